"""Against the kernel's own inotify."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgeshare.folder_watch import FOLDER_RETRY_S, FolderWatch

SAFETY_S = 30


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncIterator[FolderWatch]:
    watch = FolderWatch(tmp_path / "folder")
    async with watch.running():
        yield watch


async def told(change: asyncio.Event) -> None:
    async with asyncio.timeout(SAFETY_S):
        await change.wait()


async def quiet(watch: FolderWatch) -> asyncio.Event:
    """The next change, once the watch has told of all that was before: of a folder that it finds after FOLDER_RETRY_S,
    too."""
    while True:
        change = watch.next_change()
        try:
            async with asyncio.timeout(1.5 * FOLDER_RETRY_S):
                await change.wait()
        except TimeoutError:
            return change


async def test_what_comes_changes_and_goes_is_told(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path)
    async with watch.running():
        change = await quiet(watch)
        (tmp_path / "config").write_text("1")
        await told(change)
        change = await quiet(watch)
        (tmp_path / "next").symlink_to("config")
        await told(change)
        change = await quiet(watch)
        (tmp_path / "next").rename(tmp_path / "data")
        await told(change)
        change = await quiet(watch)
        (tmp_path / "data").unlink()
        await told(change)


async def test_a_folder_that_comes_goes_and_comes_again_is_watched(watch: FolderWatch, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for _ in range(2):
        folder.mkdir()
        change = await quiet(watch)
        (folder / "kubelet.sock").touch()
        await told(change)
        change = watch.next_change()
        (folder / "kubelet.sock").unlink()
        await told(change)
        change = watch.next_change()
        folder.rmdir()
        await told(change)


async def test_a_burst_is_told_of_once_or_twice(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path, settle_s=0.5)
    async with watch.running():
        change, times = await quiet(watch), 0
        for number in range(1_000):
            (tmp_path / str(number)).touch()
        while not times or (change.is_set() and times <= 2):
            await told(change)
            times += 1
            change = watch.next_change()
            # Whatever came of the burst is settled by then.
            await asyncio.sleep(1)
    assert times <= 2


async def test_it_ends_at_whatever_step_it_is_told_to(tmp_path: Path) -> None:
    for step in range(20):
        async with asyncio.timeout(SAFETY_S) as safety, FolderWatch(tmp_path, settle_s=0).running():
            for _ in range(step):
                (tmp_path / "config").write_text(f"{step}")
                await asyncio.sleep(0)
        assert not safety.expired(), f"told to end after {step} steps, it went on"
