"""The hook for other processors and older C libraries, and what runs programs of another processor here."""

import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from onenode.cache import cache_dir, make_once
from programs import ROOT

GLIBC_OLDEST = (2, 17)


def portable(processor: str, simgpu: bool = False) -> Path:
    """The folder with the hook for this processor, and the simulated driver if wanted; skips the test where there is no
    compiler."""
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed (pip install ziglang): no compiler for other processors and C libraries")
    target = f"{processor}-linux-gnu.{GLIBC_OLDEST[0]}.{GLIBC_OLDEST[1]}"
    command = [sys.executable, "setup.py", "-q", "build_portable", "--target", target]
    subprocess.run([*command, *(["--with-simgpu"] if simgpu else [])], check=True, cwd=ROOT)
    return ROOT / "build" / "portable" / processor


def debian(package: str) -> Path:
    """What a Debian package holds, unpacked into the tests' cache and not installed; skips the test where it cannot be
    had."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here, to get Debian's {package} by")

    def fetch(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            # The scratch folder is this user's alone.
            download = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=", package]
            got = subprocess.run(download, cwd=scratch, check=False, capture_output=True, text=True)
            if got.returncode != 0:
                pytest.skip(f"apt-get cannot download {package}: {got.stderr.strip()[-200:]}")
            for archive in Path(scratch).glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)

    return make_once(cache_dir() / f"debian-{package}", fetch)


class Emulator:
    """Runs aarch64 programs."""

    def __init__(self) -> None:
        self._prefix: list[str] = []
        if platform.machine() != "aarch64":
            installed = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
            program = installed or str(debian("qemu-user-static") / "usr/bin/qemu-aarch64-static")
            self._prefix = [program, "-L", str(debian("libc6-arm64-cross") / "usr/aarch64-linux-gnu")]

    def command(self, program: Path) -> list[str]:
        """How a program is called."""
        return [*self._prefix, str(program)]

    def environment(self, **variables: str) -> dict[str, str]:
        """Variables for the program: those that the loader reads must not reach the emulator itself."""
        if not self._prefix:
            return variables
        return {"QEMU_SET_ENV": ",".join(f"{name}={value}" for name, value in variables.items())}
