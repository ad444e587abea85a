"""Which pod's container a process runs in, as its control group says. Pure."""

import re
from dataclasses import dataclass

# The uid: with dashes, with underscores where systemd made the slice, or a static pod's hash of its file. The
# container: 64 digits, for systemd in a scope that begins with the runtime's name. Written by the kubelet
# (pkg/kubelet/cm/cgroup_manager_linux.go) and the runtimes; what lies before them depends on the kubelet's cgroup root
# and on the namespace that one looks from.
_CONTAINER = re.compile(
    r"(?:^|[/-])pod(?P<pod>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?"
    r"/(?:[a-z]+(?:-[a-z]+)*-)?(?P<container>[0-9a-f]{64})(?:\.scope)?(?:/|$)"
)


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod."""

    pod_uid: str
    container_id: str


def container_of(cgroups: bytes) -> Container | None:
    """The container of a process, from its /proc/PID/cgroup (one line in cgroup v2, one for each hierarchy in v1); None
    where it runs in no pod. Groups below a container's may have any name, one that is no text, too."""
    for line in cgroups.decode(errors="replace").splitlines():
        path = line.split(":", 2)[-1]
        found = _CONTAINER.search(path)
        if found is not None:
            return Container(found["pod"].replace("_", "-"), found["container"])
    return None
