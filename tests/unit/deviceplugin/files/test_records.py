"""An allocation and its record: it outlives the plugin, and is read again whoever wrote it."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from deviceplugin.admission.admission import Admission
from deviceplugin.allocations.lifetimes import Lifetimes
from deviceplugin.allocations.manager_client import Manager
from deviceplugin.allocations.records import Records
from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.inject.library import Library
from deviceplugin.pods.applicants import Applicants
from deviceplugin.pods.podresources import InFlight, Listings
from deviceplugin.units.ledger import Allocation, Owner, Terms
from edgeshare.contract.accelerator_kind import GPU as GPUS
from edgeshare.kubelet.podresources import PodResources
from tests.kit.deviceplugin.store import GPU, UNITS, new_store


def test_what_was_handed_out_survives_the_plugin(store: Store, library: Library, tmp_path: Path) -> None:
    allocation = replace(
        store.mint(UNITS), owner=Owner("team", "trainer", "main", "u1"), terms=Terms(2, 50, "latency", 100)
    )
    store.put(allocation)
    again = new_store(tmp_path, library)
    again.load()
    assert list(again.ledger) == [allocation]


def test_a_dropped_allocation_is_forgotten_but_for_telling_the_manager(
    store: Store, library: Library, tmp_path: Path
) -> None:
    allocation = store.mint(UNITS)
    store.drop(allocation)
    assert store.leaving == {allocation.id}
    again = new_store(tmp_path, library)
    again.load()
    assert len(again.ledger) == 0
    store.gone(allocation.id)
    assert store.leaving == set()
    assert not store.files(allocation).socket_folder.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"id": 1}', b"\xff"])
def test_a_record_that_cannot_be_read_is_left_out_and_said_so(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/record.json").write_bytes(content)
    assert list(Records(tmp_path).read()) == []
    assert "x/record.json is left out" in caplog.text


def test_what_another_version_wrote_into_a_record_stays_there(store: Store, library: Library, tmp_path: Path) -> None:
    owner, terms = Owner("team", "trainer", "main", "u1"), Terms(2, 50, "latency", 100)
    allocation = replace(store.mint(UNITS), owner=owner, terms=terms)
    store.put(allocation)
    record = tmp_path / f"state/{GPUS.resource}/{allocation.id}/record.json"
    newer = json.loads(record.read_text())
    newer["colour"] = {"name": "red"}
    newer["terms"]["colours"] = [1, 2]
    newer["owner"]["colour"] = None
    record.write_text(json.dumps(newer))
    again = new_store(tmp_path, library)
    again.load()
    assert list(again.ledger) == [allocation]
    again.put(replace(allocation, memory_mib=7))
    newer["memory_mib"] = 7
    newer["unit_ids"] = sorted(newer["unit_ids"])
    kept = json.loads(record.read_text())
    assert {**kept, "unit_ids": sorted(kept["unit_ids"])} == newer


def test_of_two_records_of_the_same_units_the_younger_is_live(tmp_path: Path, library: Library) -> None:
    records = Records(tmp_path / f"state/{GPUS.resource}")
    for age, name in enumerate(["gpu-young", "gpu-old"]):
        records.write(Allocation(name, UNITS, library.hash), "")
        os.utime(tmp_path / f"state/{GPUS.resource}/{name}/record.json", (1000 - age, 1000 - age))
    store = new_store(tmp_path, library)
    store.load()
    assert [allocation.id for allocation in store.ledger] == ["gpu-young"]
    assert store.leaving == {"gpu-old"}


async def test_who_is_just_taking_units_back_sees_that_they_were_handed_out_again(store: Store, tmp_path: Path) -> None:
    devices = Devices()
    devices.set([GPU])
    listings = Listings(PodResources(tmp_path / "nobody.sock", GPUS.resource), InFlight())
    nobody_known = Applicants(None, store.ledger, listings.get, GPUS)
    admission = Admission(devices, store, listings, nobody_known, Lifetimes(None, None, Manager(tmp_path)))
    await admission.allocate([UNITS])
    (before,) = store.ledger
    await admission.allocate([UNITS])
    (after,) = store.ledger
    # The comparison goes by its being the very one that it found.
    assert after == before
    assert after is not before
