"""Programs for another processor: run in a root file system of theirs as if this machine were of that kind.

    python -m tests.kit.programs.emulated EMULATOR ROOT PROGRAM ...

The kernel is told of the emulator (qemu-user, static) in a user namespace alone: what these programs start runs, too,
and nothing of the machine is changed. That takes root, and Linux 6.7 or later.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.kit.processes.errors import NodeError

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC = 0x1000, 0x4000
KERNEL = (6, 7)
REGISTER = Path("/proc/sys/fs/binfmt_misc/register")
# An executable, or a library that is one, of ELF: 64 bits, little-endian, AArch64 (Linux, "Kernel Support for
# miscellaneous Binary Formats"; F: the emulator is opened now, so that it is found in another root).
AARCH64 = (
    *(r":aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00", ":"),
    *(r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff", ":{emulator}:F"),
)
EVERYBODY = "0 0 4294967295\n"

libc = ctypes.CDLL(None, use_errno=True)


def is_possible() -> bool:
    """Whether a namespace of this kernel may have emulators of its own."""
    version = tuple(int(each) for each in os.uname().release.split(".")[:2])
    return version >= KERNEL and os.geteuid() == 0


def command(emulator: Path, root: Path, *words: str) -> list[str]:
    """The command line that runs a program of the root, named by its path there."""
    return [sys.executable, "-m", "tests.kit.programs.emulated", str(emulator), str(root), *words]


def _call(done: int, what: str) -> None:
    if done != 0:
        raise NodeError(f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: Path, kind: str | None, flags: int) -> None:
    line = (source.encode(), str(target).encode(), kind and kind.encode(), flags, None)
    _call(libc.mount(*line), f"{source} cannot be mounted at {target}")


def _run(emulator: Path, root: Path, words: Sequence[str], unshared: int, mapped: int) -> None:
    """In a process of its own: what is run is run in its place."""
    _call(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "no user namespace can be made")
    os.close(unshared)
    os.read(mapped, 1)
    _mount("binfmt_misc", REGISTER.parent, "binfmt_misc", 0)
    REGISTER.write_text("".join(AARCH64).format(emulator=emulator))
    for each in ("/dev", "/proc", "/sys"):
        (root / each[1:]).mkdir(exist_ok=True)
        _mount(each, root / each[1:], None, MS_BIND | MS_REC)
    os.chroot(root)
    os.chdir("/")
    os.execvp(words[0], list(words))


def main(emulator: str, root: str, *words: str) -> int:
    """The program's exit status."""
    told, unshared = os.pipe()
    mapped, may_map = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(may_map)
        _run(Path(emulator), Path(root), words, unshared, mapped)
    os.close(unshared)
    # Ends once the other one has its namespace, or is gone.
    os.read(told, 1)
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{child}/{name}").write_text(EVERYBODY)
    os.close(may_map)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
