"""The distribution's packages that the node and its images need."""

import os
import shutil
from collections.abc import Iterable

from onenode.command import run, say
from onenode.errors import NodeError

# Each is known by a program of its own. The names are the same in Debian 12 and in Ubuntu 22.04 and later.
NODE_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "etcd": "etcd-server",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "nft": "nftables",
    "openssl": "openssl",
    "gcc": "gcc",
    "mount": "mount",
}
IMAGE_PACKAGES = {"mmdebstrap": "mmdebstrap", "buildah": "buildah"}

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing(packages: dict[str, str]) -> list[str]:
    """The names of those of `packages` (program to package) whose program is not there."""
    return [name for program, name in packages.items() if shutil.which(program, path=SYSTEM_PATH) is None]


def install(names: Iterable[str]) -> None:
    """Install packages by apt-get. Raises NodeError where that cannot be done."""
    wanted = list(names)
    if not wanted:
        return
    if shutil.which("apt-get") is None:
        raise NodeError(f"this machine has no apt-get: install {' '.join(wanted)} (Debian's names) by hand")
    if os.geteuid() != 0:
        raise NodeError(f"installing {' '.join(wanted)} needs root: run the same again with sudo")
    say(f"installing {' '.join(wanted)} with apt-get …")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-qq"], env=env)
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted], env=env)
