"""A process that takes a lease of a file, so that whoever opens it waits."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.processes.waiting import PATIENCE_S

TAKES = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
try:
    fcntl.fcntl(os.open(sys.argv[1], os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK)
except BlockingIOError:
    print("somebody has it open", flush=True)
else:
    print("taken", flush=True)
sys.stdin.read()
"""


@contextmanager
def leased(path: Path) -> Iterator[bool]:
    """While somebody tries to have a lease of a file that only its owner may take; whether it could be."""
    command = [sys.executable, "-c", TAKES, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline() == "taken\n"
        process.communicate(timeout=PATIENCE_S)
