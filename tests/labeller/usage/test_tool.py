"""A program that prints lines is followed, whatever it does. It is a real one, with a real pipe."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from labeller.usage.tool import LINE_BYTES_MAX, Follower, Pace
from tests.kit.labeller.watched import PATIENCE_S, ends, write_program

PACE = Pace(interval_s=0.01, silence_s=PATIENCE_S, restart_s=0.01, restart_most_s=0.04)
PATIENT = replace(PACE, restart_most_s=PATIENCE_S)
"""With this no program runs for so long that what is wrong with it is told anew, however busy the machine is."""


class Following:
    """A program that is followed. It is one of its lines that begins with ``line``."""

    def __init__(self, script: str | None, folder: Path, pace: Pace) -> None:
        self.path = folder / "program"
        if script is not None:
            write_program(self.path, script)
        self.lines: list[bytes] = []
        self.times_s: list[float] = []
        self._news = asyncio.Event()
        self.follower = Follower((str(self.path), "--interval", "10"), self._take, pace)

    def _take(self, line: bytes) -> bool:
        self.lines.append(line)
        self.times_s.append(asyncio.get_running_loop().time())
        self._news.set()
        return line.startswith(b"line")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits for a line after which something holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def following(script: str | None, folder: Path, pace: Pace = PACE) -> AsyncIterator[Following]:
    followed = Following(script, folder, pace)
    stop = asyncio.Event()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(followed.follower.run(stop))
        try:
            yield followed
        finally:
            stop.set()


class Told(logging.Handler):
    """Waits until something was logged of a program."""

    def __init__(self) -> None:
        super().__init__()
        self._event = asyncio.Event()
        logging.getLogger("labeller.usage.tool").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._event.set()

    async def wait(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._event.wait()
        logging.getLogger("labeller.usage.tool").removeHandler(self)


def gone(pid: bytes | int) -> bool:
    """Whether a process is over, or soon is: it closes its files a moment before."""
    try:
        return ends(os.pidfd_open(int(pid)))
    except ProcessLookupError:
        return True


async def test_each_line_is_handed_on_and_nothing_of_ours_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "ours")
    script = (
        'echo "line $@"; read -r typed || echo "line no input"; echo "line [$SECRET] $PWD $LC_ALL"; exec sleep 1000'
    )
    async with following(script, tmp_path) as followed:
        await followed.until(lambda: len(followed.lines) == 3)
    assert followed.lines == [b"line --interval 10", b"line no input", b"line [] / C"]
    assert (followed.follower.there, followed.follower.starts, followed.follower.skipped_lines) == (True, 1, 0)


async def test_one_that_ends_is_started_again_less_and_less_often(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with following("echo line $$; echo broken sensor >&2; exit 3", tmp_path, PATIENT) as followed:
        await followed.until(lambda: followed.follower.starts == 6)
    starts_s = [at for at, line in zip(followed.times_s, followed.lines, strict=True) if line.startswith(b"line")]
    pauses_s = [after - before for before, after in pairwise(starts_s)]
    assert all(pause >= least for pause, least in zip(pauses_s, (0.01, 0.02, 0.04, 0.08), strict=False))
    assert followed.follower.skipped_lines >= 5
    # Told once, however often it happens.
    assert [record.getMessage() for record in caplog.records] == [
        f"{followed.path} ended with status 3, saying 'broken sensor'; it is started again"
    ]


async def test_one_that_hangs_is_ended_with_its_children_and_started_again(tmp_path: Path) -> None:
    pace = Pace(interval_s=0.01, silence_s=0.2, restart_s=0.01, restart_most_s=0.04)
    # Neither it nor its child ends when asked to.
    script = "trap '' TERM; sleep 1000 & echo line $$ $!; wait; wait"
    async with following(script, tmp_path, pace) as followed:
        await followed.until(lambda: len(followed.lines) == 2)
        assert all(gone(pid) for pid in followed.lines[0].split()[1:])
    assert all(gone(pid) for line in followed.lines for pid in line.split()[1:])


async def test_at_the_end_no_process_is_left(tmp_path: Path) -> None:
    async with following("sleep 1000 & echo line $$ $!; wait", tmp_path) as followed:
        await followed.until(lambda: len(followed.lines) == 1)
    assert all(gone(pid) for pid in followed.lines[0].split()[1:])


async def test_also_where_following_is_given_up_no_process_is_left(tmp_path: Path) -> None:
    followed = Following("sleep 1000 & echo line $$ $!; wait", tmp_path, PACE)
    task = asyncio.create_task(followed.follower.run(asyncio.Event()))
    await followed.until(lambda: len(followed.lines) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(gone(pid) for pid in followed.lines[0].split()[1:])


FLOODS = {
    "lines": ("while :; do echo line $$; done", "prints more lines than the one in 0.01 s that was asked for"),
    "no end of a line": (
        "echo line $$; exec tr '\\0' x < /dev/zero",
        f"printed more than {LINE_BYTES_MAX} bytes without the end of a line",
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_one_that_floods_is_ended_and_started_again(
    flood: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script, trouble = FLOODS[flood]
    async with following(script, tmp_path) as followed:
        await followed.until(lambda: len(set(followed.lines)) == 3)
        assert gone(followed.lines[0].split()[1])
    assert followed.follower.starts == 3
    assert f"{followed.path} {trouble}; it is started again" in caplog.text


async def test_a_line_that_is_not_its_own_is_counted_and_passed_over(tmp_path: Path) -> None:
    async with following("echo line 1; echo; printf '\\377\\n'; echo line 2; exec sleep 1000", tmp_path) as followed:
        await followed.until(lambda: followed.lines[-1:] == [b"line 2"])
    assert (followed.follower.starts, followed.follower.skipped_lines) == (1, 2)


async def test_a_last_line_without_an_end_is_not_believed(tmp_path: Path) -> None:
    async with following("printf 'line 1\\nline 23'", tmp_path) as followed:
        await followed.until(lambda: followed.follower.starts == 3)
    assert set(followed.lines) == {b"line 1"}


async def test_none_is_normal_and_one_that_comes_is_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with following(None, tmp_path) as followed:
        await asyncio.sleep(0)
        assert (followed.follower.there, followed.follower.starts) == (False, 0)
        write_program(tmp_path / "new", "echo line; exec sleep 1000")
        (tmp_path / "new").rename(followed.path)
        await followed.until(lambda: followed.lines == [b"line"])
        assert followed.follower.there
    assert caplog.text == ""


NO_PROGRAMS = {
    "of another processor": (b"\x7fELF\x02\x01\x01" + bytes(57), 0o755, "cannot be run: Exec format error"),
    "not to be run": (b"#!/bin/sh\n", 0o644, "cannot be run: Permission denied"),
    "whose shell is missing": (b"#!/nowhere/sh\n", 0o755, "cannot be run: No such file or directory"),
}


@pytest.mark.parametrize("kind", NO_PROGRAMS)
async def test_one_that_cannot_be_run_is_said_and_tried_again(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content, mode, trouble = NO_PROGRAMS[kind]
    (tmp_path / "program").write_bytes(content)
    (tmp_path / "program").chmod(mode)
    tried = Told()
    async with following(None, tmp_path, PATIENT) as followed:
        await tried.wait()
        write_program(tmp_path / "new", "echo line; exec sleep 1000")
        (tmp_path / "new").rename(followed.path)
        await followed.until(lambda: followed.lines == [b"line"])
    assert [record.getMessage() for record in caplog.records] == [f"{followed.path} {trouble}; it is started again"]
