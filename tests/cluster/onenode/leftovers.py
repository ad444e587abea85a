"""What containers and the kubelet leave on a machine, and its removal."""

import contextlib
import json
import os
import shutil
from pathlib import Path

from onenode.command import run
from onenode.layout import CONTAINERD_SOCKET

CTR = ("/usr/bin/ctr", "--address", str(CONTAINERD_SOCKET), "--namespace", "k8s.io")
CGROUPS = Path("/sys/fs/cgroup")


def remove_containers() -> None:
    """Kill and remove every container of our containerd, with its network namespace."""
    for container in run([*CTR, "containers", "list", "--quiet"]).split():
        info = json.loads(run([*CTR, "containers", "info", container]))
        if any(line.split()[0] == container for line in run([*CTR, "tasks", "list"]).splitlines()[1:]):
            run([*CTR, "tasks", "delete", "--force", container])
        for namespace in info.get("Spec", {}).get("linux", {}).get("namespaces", []):
            # Its end takes along the veth pair, whose other half is the host's.
            if namespace["type"] == "network" and namespace.get("path", "").startswith("/var/run/netns/"):
                _unmount(Path(namespace["path"]).resolve())
                Path(namespace["path"]).unlink(missing_ok=True)
        run([*CTR, "containers", "delete", container])


def remove_folder(folder: Path) -> None:
    """Delete `folder`; what is mounted below it is unmounted first, never deleted."""
    if folder.exists():
        _unmount(folder.resolve())
        shutil.rmtree(folder)


def remove_pod_cgroups() -> None:
    """Delete the kubelet's cgroups that no process is in, in either hierarchy."""
    for top in (*CGROUPS.glob("*/kubepods"), CGROUPS / "kubepods"):
        for folder, _, _ in os.walk(top, topdown=False):
            # One that another process is in stays; the next start uses it as it is.
            with contextlib.suppress(OSError):
                Path(folder).rmdir()


def _unmount(folder: Path) -> None:
    """Unmount everything at and below `folder`, the latest mount first."""
    points = [_unescaped(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(points):
        if Path(point).is_relative_to(folder):
            run(["umount", point])


def _unescaped(field: str) -> str:
    """A path as mountinfo writes it: blanks and backslashes in octal (proc(5))."""
    return field.encode("latin-1", "backslashreplace").decode("unicode_escape") if "\\" in field else field
