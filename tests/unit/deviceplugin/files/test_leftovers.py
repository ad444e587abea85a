"""What a plugin that was killed left behind goes when the next one starts, and nothing else does."""

import asyncio
from pathlib import Path

import pytest

from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.files import write_file
from deviceplugin.health.health_records import HealthRecords
from deviceplugin.inject.cdi import Specs
from deviceplugin.inject.library import Library
from deviceplugin.live_config import ChosenName, Settings
from deviceplugin.node_events import NodeEvents
from edgeshare.contract.accelerator_kind import GPU as GPUS
from tests.kit.deviceplugin.store import UNITS, WHOLE, new_store

UNFINISHED = "1c8_ag6c"


async def test_a_start_removes_what_was_being_written_when_the_plugin_was_killed(
    tmp_path: Path, library: Library, source: Path
) -> None:
    (tmp_path / "cdi").mkdir()
    kept = new_store(tmp_path, library).mint(UNITS)
    records = tmp_path / f"state/{GPUS.resource}/{kept.id}"
    ends = {
        records / f".record.json.{UNFINISHED}",
        records / f".ld.so.preload.{UNFINISHED}",
        library.path(library.hash).parent / f".libedgeshare_cuda.so.{UNFINISHED}",
        tmp_path / f"state/.config-name.{UNFINISHED}",
        tmp_path / f"health/.GPU-a.json.{UNFINISHED}",
        tmp_path / f"cdi/.edge-gpu.json.{UNFINISHED}",
    }
    others = {tmp_path / f"cdi/.nvidia.json.{UNFINISHED}", tmp_path / f"state/.somebody.{UNFINISHED}"}
    (tmp_path / "health").mkdir()
    for path in ends | others:
        path.touch()
    again = new_store(tmp_path, library)
    again.load()
    Library(tmp_path / "state/hook", source).install()
    ChosenName(tmp_path / "state/config-name").write("")
    HealthRecords(tmp_path / "health").read()
    stop = asyncio.Event()
    stop.set()
    await Specs(tmp_path / "cdi", Settings(None), Devices(), [], NodeEvents()).run(stop)
    assert {path for path in ends | others if path.exists()} == others
    assert list(again.ledger) == [kept]


def test_what_lies_there_for_an_allocation_without_a_record_goes_unless_the_manager_has_it(
    store: Store, library: Library, tmp_path: Path
) -> None:
    recorded, lost, begun = store.mint(UNITS), store.mint(WHOLE - UNITS), tmp_path / "run/clients/gpu-begun"
    folder = tmp_path / f"state/{GPUS.resource}"
    (folder / lost.id / "record.json").unlink()
    begun.mkdir()
    (folder / "gpu-begun").mkdir()
    others = tmp_path / "run/clients/run-somebodys"
    others.mkdir()
    again = new_store(tmp_path, library)
    again.load()
    again.remove_unrecorded({lost.id})
    assert {path.name for path in folder.iterdir()} == {recorded.id, lost.id}
    assert {path.name for path in begun.parent.iterdir()} == {recorded.id, lost.id, others.name}
    again.remove_unrecorded(set())
    assert {path.name for path in folder.iterdir()} == {recorded.id}
    assert {path.name for path in begun.parent.iterdir()} == {recorded.id, others.name}


def test_a_file_that_cannot_be_put_in_place_is_named_the_same_each_time(tmp_path: Path) -> None:
    said = set()
    for _ in range(2):
        with pytest.raises(FileNotFoundError) as caught:
            write_file(tmp_path / "gone" / "file", b"text")
        said.add(str(caught.value))
    assert said == {f"[Errno 2] No such file or directory: '{tmp_path / 'gone' / 'file'}'"}
