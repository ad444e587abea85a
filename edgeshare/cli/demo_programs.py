"""Programs that are started for a while: each with a log of its own, each ended whatever happens."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from edgeshare.contract.errors import Unavailable

END_S = 5.0
"""How long a program has to end once it was asked to."""

LOG_TAIL_LINES = 3
"""Lines of a log that an error repeats."""

EDGESHARE = (sys.executable, "-m", "edgeshare.cli")
"""The ``edgeshare`` command of this very installation."""


class Program:
    """One program and its log."""

    def __init__(self, name: str, argv: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Starts it, in a session of its own: a terminal's Ctrl-C is for us, and we end it in our order."""
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                argv,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def status(self, wait_s: float = 0) -> int | None:
        """Its exit status, after at most ``wait_s``; None while it runs, −n where signal n ended it."""
        try:
            return self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def check(self) -> None:
        """Raises Unavailable, with the end of its log, where it has ended."""
        status = self.status()
        if status is not None:
            raise Unavailable(f"{self.name} ended with status {status}: {self.log_tail()} (all of it: {self.log})")

    def log_tail(self) -> str:
        """The last lines of its log, as one."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        return " | ".join([line.strip() for line in lines if line.strip()][-LOG_TAIL_LINES:]) or "it said nothing"

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the program itself; does nothing where it has ended."""
        self._process.send_signal(number)

    def end(self, deadline_s: float) -> None:
        """Waits for it until ``deadline_s`` (time.monotonic), then kills it and all that it has started."""
        try:
            self._process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Programs:
    """The programs of one stay, ended in reverse order when it is over. A context manager."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[Program] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(self._running)

    def start(self, name: str, argv: Sequence[str], environment: Mapping[str, str]) -> Program:
        """Starts one; its log is NAME.log."""
        program = Program(name, argv, environment, self._logs / f"{name}.log")
        self._running.append(program)
        return program

    def end(self, programs: Sequence[Program]) -> None:
        """Asks these to end, the last started first, and ends those that do not listen by force."""
        deadline_s = time.monotonic() + END_S
        for program in reversed(programs):
            program.signal(signal.SIGTERM)
        for program in programs:
            program.end(deadline_s)
        self._running = [program for program in self._running if program not in programs]
