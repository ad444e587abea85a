"""What containers and the kubelet leave on a machine, and its removal."""

import contextlib
import os
import shutil
from pathlib import Path

from tests.kit.onenode import cri
from tests.kit.onenode.layout import CONTAINERD_SOCKET
from tests.kit.processes.command import run

CTR = ("/usr/bin/ctr", "--address", str(CONTAINERD_SOCKET), "--namespace", "k8s.io")
LOG_LINKS = Path("/var/log/containers")  # the kubelet's links, wherever its podLogsDir is
CGROUPS = Path("/sys/fs/cgroup")


def remove_pods() -> None:
    """Have our containerd end and remove every pod, with its network, as the kubelet would.

    Raises NodeError when it cannot.
    """
    kind = 'labels."io.cri-containerd.kind"==sandbox'
    for pod in run([*CTR, "containers", "list", "--quiet", kind]).split():
        cri.remove_pod(pod)


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


def remove_log_links(pod_logs: Path) -> None:
    """Delete the kubelet's links to files in `pod_logs`; the folder of the links is the whole machine's."""
    for link in LOG_LINKS.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(pod_logs):
            link.unlink()


def _unmount(folder: Path) -> None:
    """Unmount everything at and below `folder`, the latest mount first."""
    points = [_unescaped(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(points):
        if Path(point).is_relative_to(folder):
            run(["umount", point])


def _unescaped(field: str) -> str:
    """A path as mountinfo writes it: blanks and backslashes in octal (proc(5))."""
    return field.encode("latin-1", "backslashreplace").decode("unicode_escape") if "\\" in field else field
