"""How long a plugin waits before it registers again, and what it finds of those before it."""

import asyncio
import logging
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.kubelet.registration import FIRST_PAUSE_S, LONGEST_PAUSE_S, Lifecycle, pause_s
from deviceplugin.kubelet.service import Service


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_pause_grows_to_a_bound_and_is_never_nothing(failures: int, jitter: float) -> None:
    pause = pause_s(failures, jitter)
    assert FIRST_PAUSE_S / 2 <= pause <= LONGEST_PAUSE_S
    assert pause_s(failures + 1, jitter) >= pause


def test_plugins_that_failed_together_do_not_try_again_together() -> None:
    assert len({pause_s(5, jitter / 10) for jitter in range(10)}) == 10


async def test_what_was_left_in_the_kubelets_folder_ends_no_plugin(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A socket whose name is too long to be connected to; and a link to one at which nobody listens, which goes."""
    long, kept = (tmp_path / f"edgeshare-gpu-{name}.sock" for name in ("x" * 120, "kept"))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left"))
    (tmp_path / "left").rename(long)
    kept.symlink_to(tmp_path / "folder")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "folder"))
    stop = asyncio.Event()
    stop.set()

    def make() -> Service:
        raise AssertionError("no kubelet is there")

    with caplog.at_level(logging.WARNING):
        await Lifecycle(tmp_path, "edge/gpu-percent", make, "edgeshare-gpu-").run(stop, lambda: None)
    assert long.exists()
    assert not kept.is_symlink()
