"""The allocations on disk."""

import json
import logging
import os
from pathlib import Path

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.v1.allocations_pb2 import SHARE_CLASS_LATENCY, Allocation, Owner
from sharemgr.node.machine.store import BYTES_MAX, DAMAGED_KEPT, Store

ALLOCATIONS = [
    Allocation(
        id="a-1",
        device_ids=["GPU-0"],
        request_percent=30,
        limit_percent=60,
        share_class=SHARE_CLASS_LATENCY,
        memory_mib=1 << 40,
        owner=Owner(namespace="team", pod="train", pod_uid="4711", container="main"),
    ),
    Allocation(id="a-2", device_ids=["GPU-0", "GPU-1"], request_percent=100, limit_percent=100),
]


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    Store(tmp_path).save(ALLOCATIONS)
    assert Store(tmp_path).load() == ALLOCATIONS


def test_nothing_saved_is_told_from_no_allocations(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.load() is None
    store.save([])
    assert store.load() == []


def test_a_write_that_was_cut_off_leaves_what_was_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(ALLOCATIONS)
    (tmp_path / "allocations.json.new").write_text('{"version": 1, "alloc')
    assert store.load() == ALLOCATIONS


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b'{"version": 1, "allocations": [',
        b"[]",
        b'{"version": 1}',
        b'{"version": 1, "allocations": {}, "more": 1}',
        b'{"version": "1", "allocations": []}',
        b'{"version": 1, "allocations": [{"id": 7}]}',
        b'{"version": 1, "allocations": [7]}',
        b'{"version": 1, "allocations": [{"id": "a", "more\\ud800": 1}]}',
        b"[" * 200_000,
        b" " * (BYTES_MAX + 1),
    ],
    ids=range(12),
)
def test_a_damaged_file_is_set_aside_and_said(tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path)
    for number in (1, 2):
        store.path.write_bytes(text)
        with caplog.at_level(logging.ERROR):
            assert store.load() is None
        aside = tmp_path / f"allocations.json.damaged-{number}"
        assert aside.read_bytes() == text
        assert str(aside) in caplog.text
        assert not store.path.exists()


def test_of_damaged_files_the_newest_are_kept_and_which_went_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    (tmp_path / "allocations.json.damaged-not-ours").touch()
    for number in range(1, 13):
        caplog.clear()
        store.path.write_text(f"damage {number}")
        assert store.load() is None
        said = "removed, as the newest 3 are kept: " in caplog.text
        assert said == (number > DAMAGED_KEPT)
        assert (f"kept: allocations.json.damaged-{number - DAMAGED_KEPT}\n" in caplog.text) == said
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    newest = {f"allocations.json.damaged-{number}": f"damage {number}" for number in (10, 11, 12)}
    assert kept == {**newest, "allocations.json.damaged-not-ours": ""}


def test_what_another_version_wrote_of_an_allocation_stays_as_long_as_that(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(ALLOCATIONS)
    newer = json.loads(store.path.read_text())
    newer["allocations"][0]["colour"] = {"name": "red"}
    store.path.write_text(json.dumps(newer))
    again = Store(tmp_path)
    assert again.load() == ALLOCATIONS
    again.save(ALLOCATIONS)
    assert json.loads(store.path.read_text()) == newer
    again.save(ALLOCATIONS[1:])
    assert json.loads(store.path.read_text())["allocations"] == newer["allocations"][1:]


def test_a_file_of_a_later_version_is_left_where_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    text = json.dumps({"version": 2, "allotments": []})
    store.path.write_text(text)
    with pytest.raises(Unavailable, match=r"later edgeshare \(version 2"):
        store.load()
    assert store.path.read_text() == text


def test_what_is_no_file_is_said_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "allocations.json")
    with pytest.raises(Unavailable, match=r"allocations\.json cannot be read: it is no regular file"):
        Store(tmp_path).load()


def test_a_link_in_the_place_of_the_new_file_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("theirs")
    (tmp_path / "allocations.json.new").symlink_to(other)
    Store(tmp_path).save(ALLOCATIONS)
    assert other.read_text() == "theirs"
    assert Store(tmp_path).load() == ALLOCATIONS


def test_what_is_saved_already_is_not_written_again(tmp_path: Path) -> None:
    Store(tmp_path).save(ALLOCATIONS)
    store = Store(tmp_path)
    loaded = store.load()
    assert loaded is not None
    (tmp_path / "allocations.json.new").mkdir()
    store.save(loaded)
    with pytest.raises(Unavailable):
        store.save(loaded[:1])
    store.save(loaded)


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "allocations.json.new").mkdir()
    with pytest.raises(Unavailable, match=r"allocations\.json cannot be written: Is a directory"):
        Store(tmp_path).save(ALLOCATIONS)
