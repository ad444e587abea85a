"""What contexts take, by model and driver, kept over restarts."""

import json
import logging
import os
from pathlib import Path

import pytest

from edgeshare.contract.devices import Device
from sharemgr.node.machine.contexts import CONTEXT_BYTES_MAX, FILE_BYTES_MAX, KINDS_MAX, ContextSizes

FIRST, SECOND, OTHER = Device("GPU-a", 0, "T4", 0), Device("GPU-b", 1, "T4", 0), Device("GPU-c", 2, "L4", 0)
ROW = {"model": "T4", "driver": "550.1", "bytes": 100}


def sizes(path: Path | None, driver: str = "550.1") -> ContextSizes:
    found = ContextSizes(path, driver)
    for device in (FIRST, SECOND, OTHER):
        found.take_in(device)
    return found


def save(found: ContextSizes) -> None:
    known = found.unsaved()
    assert known is not None
    found.save(known)


def test_devices_of_one_model_have_one_figure_that_a_restart_keeps(tmp_path: Path) -> None:
    path = tmp_path / "contexts.json"
    found = sizes(path)
    found["GPU-a"] = 100
    save(found)
    for known in (found, sizes(path)):
        assert [known.get(device.id, 0) for device in (FIRST, SECOND, OTHER)] == [100, 100, 0]
        assert known.unsaved() is None
    assert not list(tmp_path.glob("*.new"))


def test_another_driver_knows_nothing_and_takes_nothing_from_what_was_known(tmp_path: Path) -> None:
    path = tmp_path / "contexts.json"
    found = sizes(path)
    found["GPU-a"] = 100
    save(found)
    newer = sizes(path, "560.2")
    assert newer.get("GPU-a", 0) == 0
    newer["GPU-a"] = 200
    save(newer)
    assert [sizes(path, driver).get("GPU-a", 0) for driver in ("550.1", "560.2")] == [100, 200]


def test_nothing_is_kept_where_nobody_says_where() -> None:
    found = sizes(None)
    found["GPU-a"] = 100
    assert found.unsaved() is None


def text(*rows: object, **changes: object) -> bytes:
    return json.dumps({"version": 1, "contexts": list(rows)} | changes).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 60_000,
        b"[]",
        b" " * (FILE_BYTES_MAX + 1),
        text(ROW, version=2),
        text(ROW, version=True),
        text(contexts={}),
        text(7),
        text(*([ROW] * (KINDS_MAX + 1))),
        text(ROW | {"more": 1}),
        text(ROW | {"model": 7}),
        text(ROW | {"driver": "x" * 1000}),
        text(ROW | {"bytes": True}),
        text(ROW | {"bytes": 1.5}),
        text(ROW | {"bytes": 0}),
        text(ROW | {"bytes": -1}),
        text(ROW | {"bytes": CONTEXT_BYTES_MAX + 1}),
    ],
)
def test_a_file_that_is_broken_is_said_once_ignored_and_written_anew(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "contexts.json"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        found = sizes(path)
        assert found.get("GPU-a", 0) == 0
    assert len(caplog.messages) == 1
    assert f"{path} cannot be used" in caplog.text
    found["GPU-a"] = 100
    save(found)
    assert sizes(path).get("GPU-a", 0) == 100


def test_what_is_no_file_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "contexts.json"
    os.mkfifo(path)
    assert sizes(path).get("GPU-a", 0) == 0
    assert "no regular file" in caplog.text


def test_a_file_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = sizes(tmp_path / "gone" / "contexts.json")
    for size_bytes in (100, 90):
        found["GPU-a"] = size_bytes
        save(found)
    assert [message for message in caplog.messages if "cannot be written" in message] == caplog.messages[-1:]
    assert found.get("GPU-a", 0) == 90


def test_no_more_is_kept_than_is_read(tmp_path: Path) -> None:
    path = tmp_path / "contexts.json"
    for number in range(KINDS_MAX + 5):
        found = sizes(path, "x" * 200 + str(number) if number % 2 else str(number))
        found["GPU-a"] = 1 + number
        found["GPU-c"] = 1 + number
        save(found)
    assert path.stat().st_size <= FILE_BYTES_MAX
    assert sizes(path, str(KINDS_MAX + 4)).get("GPU-c", 0) == KINDS_MAX + 5
