"""Starts the processes in which cases are simulated, and asks them."""

import ctypes
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from edgeshare.contract.errors import Unavailable
from simgpu.native import LIBRARIES
from simgpu.readings import MADE
from tests.kit.programs.compiled import compiled
from tests.kit.virtual.cases.case import Case, read_case
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.contacts import check_contacts
from tests.kit.virtual.vt.build import GCC, LIBRARY, LINK

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
HOOK = ROOT / "cuda_hook" / "libedgeshare_cuda.so"
DRIVER = LIBRARIES / "libcuda.so.1"
INCLUDES = (FOLDER / "vt", ROOT / "cuda_hook")

ADDR_NO_RANDOMIZE = 0x0040000
UNCHANGED = 0xFFFFFFFF

BUDGET_S = 120
"""Real seconds after which a case is ended; the slowest of all takes some two, with the processor to itself."""

SAID_MOST = 20_000
"""Characters of what a case said last that are told."""

STATIC_TLS_BYTES = 1 << 18
"""For the libraries of eighty clients: what each keeps for a thread lies in glibc's surplus (glibc's manual,
"Dynamic Linking Tunables")."""


def reason_not_to() -> str | None:
    """Why nothing can be simulated on this machine; None where it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"the virtual machine changes stacks by x86-64's registers, and this is {platform.machine()}"
    libc = ctypes.CDLL(None)
    before = libc.personality(UNCHANGED)
    if libc.personality(before | ADDR_NO_RANDOMIZE) == -1:
        return "this container forbids personality(ADDR_NO_RANDOMIZE): addresses, and with them each run, would differ"
    libc.personality(before)
    return None


def build_libraries() -> Path:
    """The folder that has the virtual machine and the programs. Raises CalledProcessError where the compiler fails."""
    sources = [str(path) for path in sorted((FOLDER / "programs").glob("*.c"))]
    includes = [f"-I{each}" for each in INCLUDES]
    programs = (*GCC, "-fPIC", "-shared", "-o", "libprograms.so", *sources, *includes, *LINK)
    return compiled("libprograms.so", LIBRARY, programs).parent


class World:
    """A process that simulates one case after the other, with a hook and a driver. Raises InvalidRequest for a library
    that goes past the virtual machine."""

    def __init__(self, libraries: Path, hook: Path = HOOK, driver: Path = DRIVER, budget_s: int = BUDGET_S) -> None:
        for library in (hook, driver):
            check_contacts(library)
        environment = {
            **os.environ,
            "LD_PRELOAD": str(libraries / "libvt.so"),
            "GLIBC_TUNABLES": f"glibc.rtld.optional_static_tls={STATIC_TLS_BYTES}",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(ROOT),
        }
        program = [sys.executable, *map(str, (FOLDER / "simulate.py", libraries, hook, driver, budget_s))]
        self._process = subprocess.Popen(
            ["setarch", "-R", *program],
            env=environment,
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def run(self, case: Case) -> Report:
        """Simulates a case. Raises InvalidRequest for what is none, DiedError for one that does not come to its end."""
        assert self._process.stdin is not None
        line = read_case(case.line()).line()
        root = Path(tempfile.mkdtemp(prefix="virtual-", dir="/dev/shm"))
        try:
            self._process.stdin.write(f"{root}\t{line}\n")
            self._process.stdin.flush()
            answer = json.loads(self._line())
            if (root / "machine" / "machine").exists():
                sys.audit(MADE, root / "machine")
            said = root / "said"
            if "died" in answer and said.exists():
                answer["said"] = said.read_text(errors="replace")[-SAID_MOST:]
            return Report.read(case, answer)
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line: str = self._process.stdout.readline()
        if not line:
            raise Unavailable(f"the simulating process ended with status {self._process.wait()}")
        return line

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
