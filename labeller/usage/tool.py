"""Follows a program that prints a line every so often, as ``tegrastats`` does. Starts it again when it ends, hangs or
prints what it should not."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from edgeshare.inventory.tree import shown
from edgeshare.waiting import ended, first_of

logger = logging.getLogger(__name__)

LINE_BYTES_MAX = 8192
"""Beyond this it is no line."""

BURST_LINES = 20
"""So many may come at once, and twice as many as asked for in the long run."""

END_S = 2.0
"""How long it may take to end by itself."""

ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
"""All that it is given: nothing of ours is its business."""


@dataclass(frozen=True)
class Pace:
    """How fast things go."""

    interval_s: float
    """Between two lines, as it was asked to."""
    silence_s: float
    """Without a line for so long it hangs."""
    restart_s: float = 1.0
    """Before it is started again the first time, doubled each time …"""
    restart_most_s: float = 60.0
    """… up to this; also how often is looked for one that is not there. Who ran so long begins anew."""


class Follower:
    """One program, one process of it at a time."""

    def __init__(self, command: Sequence[str], take: Callable[[bytes], bool], pace: Pace) -> None:
        """``take`` is given each line, and says whether it is one of the program's."""
        self._command = command
        self._take = take
        self._pace = pace
        self.there = False
        """Whether there is such a program: none is normal."""
        self.starts = 0
        self.skipped_lines = 0
        self._last_words = ""

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``; then no process of it is left."""
        loop = asyncio.get_running_loop()
        pause_s = self._pace.restart_s
        told = ""
        while not stop.is_set():
            if not self._look():
                await first_of(stop, timeout_s=self._pace.restart_most_s)
                continue
            began_s = loop.time()
            trouble = await self._once(stop)
            if stop.is_set():
                return
            if loop.time() - began_s >= self._pace.restart_most_s:
                pause_s, told = self._pace.restart_s, ""
            if trouble != told:
                logger.warning("%s %s; it is started again", self._command[0], trouble)
            told = trouble
            await first_of(stop, timeout_s=pause_s)
            pause_s = min(2 * pause_s, self._pace.restart_most_s)

    def _look(self) -> bool:
        self.there = Path(self._command[0]).exists()
        return self.there

    async def _once(self, stop: asyncio.Event) -> str:
        """Runs it; why that came to an end."""
        self.starts += 1
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=ENVIRONMENT,
                cwd="/",
                # Its children, too, can be ended with it. Where we are killed, its next line ends it: nobody reads.
                start_new_session=True,
                limit=LINE_BYTES_MAX,
            )
        except OSError as error:
            return f"cannot be run: {error.strerror}"
        assert process.stdout is not None
        reading = asyncio.create_task(self._read(process.stdout))
        try:
            await first_of(reading, stop)
            trouble = reading.result() if reading.done() else ""
        finally:
            await ended(reading)
            await _end(process, process.stdout)
        return trouble or f"ended with status {process.returncode}{self._last_words}"

    async def _read(self, output: asyncio.StreamReader) -> str:
        """Takes its lines; what is wrong with it, nothing where it ended."""
        loop = asyncio.get_running_loop()
        began_s, lines, self._last_words = loop.time(), 0, ""
        while True:
            try:
                async with asyncio.timeout(self._pace.silence_s):
                    line = await output.readuntil(b"\n")
            except TimeoutError:
                return f"has said nothing for {self._pace.silence_s:g} s"
            except asyncio.LimitOverrunError:
                return f"printed more than {LINE_BYTES_MAX} bytes without the end of a line"
            except asyncio.IncompleteReadError:
                # A last line that has no end may be a part of one.
                return ""
            lines += 1
            if lines > BURST_LINES + 2 * (loop.time() - began_s) / self._pace.interval_s:
                return f"prints more lines than the one in {self._pace.interval_s:g} s that was asked for"
            if not self._take(line.rstrip()):
                self.skipped_lines += 1
                self._last_words = f", saying {shown(line.decode('latin-1').rstrip())}"


async def _end(process: asyncio.subprocess.Process, output: asyncio.StreamReader) -> None:
    """Ends a process and its children, however it takes it."""
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal_all(process, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    # What it still had to say has to be read, or its end is not noticed.
                    while await output.read(LINE_BYTES_MAX):
                        pass
                    await process.wait()
                    return
        logger.error("process %d does not end; it is left behind", process.pid)
    except asyncio.CancelledError:
        _signal_all(process, signal.SIGKILL)
        raise


def _signal_all(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    # Also where it has ended itself: while children are left, no other group gets its number.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
