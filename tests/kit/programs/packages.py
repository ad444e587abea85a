"""The distribution's packages that the node, its images and the tests need."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.kit.processes.command import run, say
from tests.kit.processes.errors import NodeError
from tests.kit.programs.cache import cache_dir, make_once

# Each is known by a program of its own. The names are the same in Debian 12 and in Ubuntu 22.04 and later.
NODE_PACKAGES = {
    "ctr": "containerd",
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
    cache_dir().mkdir(parents=True, exist_ok=True)
    # A second apt-get fails where it could wait.
    with (cache_dir() / "apt-get.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(["apt-get", "update", "-qq"], env=env)
        run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted], env=env)


def unpacked(name: str) -> Path:
    """The folder with what a package holds: fetched by apt-get once, into the cache, and not installed; what it depends
    on is not fetched. Raises NodeError where it cannot be had."""

    def fetch(folder: Path) -> None:
        for tool in ("apt-get", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise NodeError(f"there is no {tool} here, to get Debian's package {name} by")
        with tempfile.TemporaryDirectory() as scratch:
            # The scratch folder is this user's alone.
            run(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=", name], cwd=Path(scratch))
            for archive in Path(scratch).glob("*.deb"):
                run(["dpkg-deb", "-x", archive, folder])

    return make_once(cache_dir() / f"debian-{name}", fetch)
