"""The hook for other processors and older C libraries, and what runs programs of another processor here."""

import importlib.util
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT

GLIBC_OLDEST = (2, 17)
DEBIAN_PACKAGES = ("qemu-user-static", "libc6-arm64-cross")
"""An emulator of single programs, and the other processor's C library, which works on any processor."""


def portable(processor: str) -> Path:
    """The folder with hook and simulated driver for this processor; skips the test where there is no compiler."""
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed (pip install ziglang): no compiler for other processors and C libraries")
    target = f"{processor}-linux-gnu.{GLIBC_OLDEST[0]}.{GLIBC_OLDEST[1]}"
    command = [sys.executable, "setup.py", "-q", "build_portable", "--target", target]
    subprocess.run(command, check=True, cwd=ROOT)
    return ROOT / "build" / "portable" / processor


class Emulator:
    """Runs aarch64 programs. Debian's packages, unpacked into a cache and not installed."""

    def __init__(self) -> None:
        if platform.machine() == "aarch64":
            self._prefix: list[str] = []
            return
        self._root = ROOT / "build" / "emulator"
        program = self._root / "usr/bin/qemu-aarch64-static"
        installed = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
        library = self._root / "usr/aarch64-linux-gnu"
        if not program.exists() or not library.exists():
            self._unpack()
        self._prefix = [installed or str(program), "-L", str(library)]

    def command(self, program: Path) -> list[str]:
        """How a program is called; its variables are those of the emulator's own process."""
        return [*self._prefix, str(program)]

    def environment(self, **variables: str) -> dict[str, str]:
        """Variables for the program: those that the loader reads must not reach the emulator itself."""
        if not self._prefix:
            return variables
        return {"QEMU_SET_ENV": ",".join(f"{name}={value}" for name, value in variables.items())}

    def _unpack(self) -> None:
        for tool in ("apt-get", "dpkg"):
            if shutil.which(tool) is None:
                pytest.skip(f"there is no {tool} here, to get {' and '.join(DEBIAN_PACKAGES)} by")
        downloads = self._root / "downloads"
        downloads.mkdir(parents=True, exist_ok=True)
        got = subprocess.run(
            ["apt-get", "download", "-q", *DEBIAN_PACKAGES], cwd=downloads, check=False, capture_output=True, text=True
        )
        if got.returncode != 0:
            pytest.skip(f"apt-get cannot download {' and '.join(DEBIAN_PACKAGES)}: {got.stderr.strip()[-200:]}")
        for package in downloads.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package.name, ".."], cwd=downloads, check=True)
        shutil.rmtree(downloads)
