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
from edgeshare.contract.units import NS_PER_S

END_S = 5.0
"""How long a program has to end once it was asked to."""

READY_S = 60.0
"""How long a program that is started may take until it is ready; more, and something must be wrong."""

LOOK_S = 0.05
"""Between two looks at a program that is starting."""

READY = "ready"
"""What a program says that waits to be told when to begin: burn, with --start-when-told."""

LEAD_NS = NS_PER_S // 10
"""From the moment when all are ready to that when they begin: they have to wake up meanwhile."""

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
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def status(self, wait_s: float = 0) -> int | None:
        """The program's exit status, after at most ``wait_s``; None while it runs, −n where signal n ended it."""
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

    def wait_until_ready(self, deadline_s: float) -> None:
        """Returns when it has said that it is ready. Raises Unavailable where it ends instead, or has not by
        ``deadline_s`` (time.monotonic)."""
        while READY not in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            self.status(wait_s=LOOK_S)
            self.check()
            if time.monotonic() > deadline_s:
                raise Unavailable(f"{self.name} is not ready after {READY_S:.0f} s; its log: {self.log}")

    def tell(self, line: str) -> None:
        """Writes the line that it waits for to its standard input. Raises Unavailable where it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.close()
        except BrokenPipeError:
            self.status(wait_s=END_S)
            self.check()
            raise

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the program itself; does nothing where it has ended."""
        self._process.send_signal(number)

    def end(self, deadline_s: float) -> None:
        """Waits for it until ``deadline_s`` (time.monotonic), then kills it and all that it has started."""
        assert self._process.stdin is not None
        # Whoever still waits to be told will not be.
        self._process.stdin.close()
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


def begin_together(programs: Sequence[Program]) -> int:
    """Has programs that wait to be told begin at one time, as soon as all are ready; returns it, in ns of the monotonic
    clock. Raises Unavailable where one ends instead, or takes too long."""
    deadline_s = time.monotonic() + READY_S
    for program in programs:
        program.wait_until_ready(deadline_s)
    begin_ns = time.monotonic_ns() + LEAD_NS
    for program in programs:
        program.tell(str(begin_ns))
    return begin_ns
