"""What a container takes of its node's memory."""

from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MIB = 1 << 20


def working_set_mib(pid: int) -> float:
    """Of the container of this process, as `kubectl top` counts it, on either cgroup hierarchy: its cgroup's usage less
    inactive file pages."""
    groups = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path.lstrip("/")))
    if "memory" in groups:
        folder, usage, inactive = CGROUPS / "memory" / groups["memory"], "memory.usage_in_bytes", "total_inactive_file"
    else:
        folder, usage, inactive = CGROUPS / groups[""], "memory.current", "inactive_file"
    stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    return (int((folder / usage).read_text()) - int(stat[inactive])) / MIB
