import asyncio
import json
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from deviceplugin.admission.admission import Admission
from deviceplugin.allocations.lifetimes import Lifetimes
from deviceplugin.allocations.manager_client import Manager
from deviceplugin.allocations.records import Records
from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.health.health_records import HealthRecords
from deviceplugin.inject.cdi import Specs
from deviceplugin.inject.library import Library
from deviceplugin.live_config import ChosenName, Settings
from deviceplugin.node_events import Notices
from deviceplugin.pods.applicants import Applicants
from deviceplugin.pods.podresources import InFlight, Listings
from deviceplugin.units.ledger import Allocation, Ledger, Owner, Terms
from edgeshare.contract.accelerator_kind import EDGETPU as EDGETPUS
from edgeshare.contract.accelerator_kind import GPU as GPUS
from edgeshare.contract.accelerator_kind import AcceleratorKind
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import Unavailable
from edgeshare.kubelet.podresources import PodResources


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "libedgeshare_cuda.so"
    path.write_bytes(b"first version")
    return path


@pytest.fixture
def library(tmp_path: Path, source: Path) -> Library:
    library = Library(tmp_path / "state/hook", source)
    library.install()
    return library


@pytest.fixture
def store(tmp_path: Path, library: Library) -> Store:
    return new_store(tmp_path, library)


def new_store(
    tmp_path: Path,
    library: Library,
    config: str = "{}",
    kind: AcceleratorKind = GPUS,
    ledgers: Mapping[AcceleratorKind, Ledger] | None = None,
) -> Store:
    """As of a plugin that has just started, with GPU and this configuration."""
    file = tmp_path / "deviceplugin.yaml"
    file.write_text(config)
    ledgers = ledgers or {kind: Ledger()}
    settings, devices = Settings(file), Devices()
    devices.set([GPU])
    specs = Specs(tmp_path / "cdi", settings, devices, ledgers.values(), Notices())
    records = Records(tmp_path / f"state/{kind.resource}")
    return Store(kind, ledgers, records, library, tmp_path / "run", settings, specs)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


GPU = Device("GPU-a", 0, "Simulated", 8192, paths=("/dev/null", "/dev/no-such-node"))
UNITS = frozenset({"GPU-a::00", "GPU-a::01"})
WHOLE = frozenset(f"GPU-a::{unit:02}" for unit in range(100))


def test_an_installed_library_is_left_as_it_is(library: Library) -> None:
    before = library.path(library.hash).stat()
    library.install()
    assert library.path(library.hash).stat() == before


def test_another_version_lies_beside_the_first(library: Library, source: Path, tmp_path: Path) -> None:
    source.write_bytes(b"second version")
    second = Library(tmp_path / "state/hook", source)
    second.install()
    assert library.path(library.hash).read_bytes() == b"first version"
    assert second.path(second.hash).read_bytes() == b"second version"
    second.check(library.hash)


def test_a_missing_or_unreadable_library_is_put_in_place_before_a_start(library: Library) -> None:
    path = library.path(library.hash)
    path.unlink()
    path.mkdir()
    library.check(library.hash)
    assert path.read_bytes() == b"first version"
    path.chmod(0o600)
    library.check(library.hash)
    assert mode(path) == 0o555


def test_a_damaged_library_is_replaced_and_who_has_it_open_keeps_it(library: Library) -> None:
    path = library.path(library.hash)
    path.chmod(0o755)
    path.write_bytes(b"damaged")
    with path.open("rb") as mapped:
        library.install()
        assert mapped.read() == b"damaged"
    assert path.read_bytes() == b"first version"


def test_another_versions_library_that_is_gone_keeps_its_container_from_starting(library: Library) -> None:
    with pytest.raises(Unavailable, match=r"is gone from .*make the pod anew"):
        library.check("0" * 32)


def test_a_damaged_library_of_another_version_keeps_its_container_from_starting(
    library: Library, source: Path, tmp_path: Path
) -> None:
    source.write_bytes(b"second version")
    second = Library(tmp_path / "state/hook", source)
    second.install()
    first = library.path(library.hash)
    first.chmod(0o755)
    first.write_bytes(b"first versio")
    with pytest.raises(Unavailable, match="or damaged: make the pod anew"):
        second.check(library.hash)


def test_an_old_library_goes_with_the_last_allocation_that_has_it(
    store: Store, library: Library, source: Path, tmp_path: Path
) -> None:
    first = library.path(library.hash)
    older = [store.mint(UNITS), store.mint(WHOLE - UNITS)]
    source.write_bytes(b"second version")
    second = Library(tmp_path / "state/hook", source)
    second.install()
    second.all_known = True
    again = new_store(tmp_path, second)
    again.load()
    with first.open("rb") as mounted:
        again.drop(older[0])
        assert first.exists()
        again.drop(older[1])
        assert not first.parent.exists()
        assert mounted.read() == b"first version"
    assert second.path(second.hash).read_bytes() == b"second version"


def test_once_all_are_known_a_library_that_no_allocation_has_is_removed_and_nothing_else(
    store: Store, library: Library, source: Path, tmp_path: Path
) -> None:
    kept = store.mint(UNITS)
    folder = tmp_path / "state/hook"
    unused = folder / ("0" * 32)
    unused.mkdir()
    (unused / "libedgeshare_cuda.so").touch()
    (folder / "somebody").mkdir()
    source.write_bytes(b"second version")
    second = Library(folder, source)
    second.install()
    second.all_known = True
    again = new_store(tmp_path, second)
    again.load()
    second.all_known = False
    again.remove_old_libraries()
    assert unused.exists()
    second.all_known = True
    again.remove_old_libraries()
    assert {path.name for path in folder.iterdir()} == {kept.library, second.hash, "somebody"}


def test_while_records_are_read_no_library_of_a_later_one_is_removed(
    tmp_path: Path, library: Library, source: Path
) -> None:
    records = Records(tmp_path / f"state/{GPUS.resource}")
    for age, (name, units) in enumerate([("gpu-live", WHOLE - UNITS), ("gpu-young", UNITS), ("gpu-old", UNITS)]):
        records.write(Allocation(name, units, library.hash), "")
        os.utime(tmp_path / f"state/{GPUS.resource}/{name}/record.json", (1000 - age, 1000 - age))
    source.write_bytes(b"second version")
    second = Library(tmp_path / "state/hook", source)
    second.install()
    second.all_known = True
    again = new_store(tmp_path, second)
    again.load()
    again.remove_old_libraries()
    assert library.path(library.hash).exists()


def test_a_library_that_a_container_of_another_kind_mounts_stays(
    tmp_path: Path, library: Library, source: Path
) -> None:
    source.write_bytes(b"second version")
    second = Library(tmp_path / "state/hook", source)
    second.install()
    second.all_known = True
    ledgers = {GPUS: Ledger(), EDGETPUS: Ledger()}
    gpus, edgetpus = (new_store(tmp_path, second, kind=kind, ledgers=ledgers) for kind in ledgers)
    old = [Allocation(f"{kind.prefix}-old", UNITS, library.hash) for kind in ledgers]
    for store, allocation in zip((gpus, edgetpus), old, strict=True):
        store.put(allocation)
    gpus.drop(old[0])
    assert library.path(library.hash).exists()
    edgetpus.drop(old[1])
    assert not library.path(library.hash).exists()


def test_a_library_that_was_not_built_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="make build"):
        Library(tmp_path / "hook", tmp_path / "nowhere.so").install()


def test_a_container_of_any_user_can_read_what_it_mounts(store: Store, tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        files = store.files(store.mint(UNITS))
    finally:
        os.umask(old)
    assert mode(files.preload_file) == 0o644
    assert mode(files.socket_folder) == 0o755
    assert mode(files.library) == 0o555
    assert mode(tmp_path / "run/clients") == 0o700


def test_parts_have_the_hook_and_whole_devices_only_with_a_cap(store: Store) -> None:
    part, whole = store.mint(UNITS), store.mint(WHOLE)
    named = f"/usr/lib/edgeshare/{store.library.hash}/libedgeshare_cuda.so\n"
    assert store.files(part).preload_file.read_text() == named
    assert store.files(whole).preload_file.read_text() == ""
    store.put(replace(whole, terms=Terms(100, memory_mib=100)))
    assert store.files(whole).preload_file.read_text() == named


def test_a_cdi_spec_that_is_gone_is_there_again_when_a_container_that_names_it_starts(
    tmp_path: Path, library: Library
) -> None:
    by_cdi = new_store(tmp_path, library, "injection: {devices: cdi}")
    by_cdi.answer([GPU], by_cdi.mint(UNITS))
    path = tmp_path / "cdi/edge-gpu.json"
    before = path.read_bytes()
    path.unlink()
    # Also by a plugin that names no more devices to CDI.
    for config in ("injection: {devices: cdi}", "{}"):
        again = new_store(tmp_path, library, config)
        again.load()
        (allocation,) = again.ledger
        again.put(allocation)
        assert path.read_bytes() == before
        path.unlink()


def test_a_cdi_folder_that_cannot_be_written_keeps_only_containers_by_cdi_from_starting(
    tmp_path: Path, library: Library
) -> None:
    by_nodes = new_store(tmp_path, library)
    before = by_nodes.mint(WHOLE - UNITS)
    by_nodes.answer([GPU], before)
    (tmp_path / "cdi").touch()
    by_cdi = new_store(tmp_path, library, "injection: {devices: cdi}")
    by_cdi.load()
    by_cdi.put(before)
    with pytest.raises(Unavailable, match=r"needs .*/cdi of the node, writable"):
        by_cdi.answer([GPU], by_cdi.mint(UNITS))


def test_nodes_are_named_that_are_there_where_the_machines_files_are_seen(tmp_path: Path, library: Library) -> None:
    store = new_store(tmp_path, library)
    assert [node.host_path for node in store.answer([GPU], store.mint(UNITS)).devices] == ["/dev/null"]
    (tmp_path / "host/dev").mkdir(parents=True)
    (tmp_path / "host/dev/no-such-node").touch()
    store = new_store(tmp_path, library, f"inventory: {{root: {tmp_path}/host}}")
    assert [node.host_path for node in store.answer([GPU], store.mint(UNITS)).devices] == ["/dev/no-such-node"]


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


@pytest.mark.parametrize("content", ["{", '{"id": 1}'])
def test_the_library_of_a_record_that_cannot_be_read_stays(
    store: Store, library: Library, source: Path, tmp_path: Path, content: str
) -> None:
    allocation = store.mint(UNITS)
    (tmp_path / f"state/{GPUS.resource}/{allocation.id}/record.json").write_text(content)
    source.write_bytes(b"second version")
    second = Library(tmp_path / "state/hook", source)
    second.install()
    second.all_known = True
    again = new_store(tmp_path, second)
    again.load()
    again.remove_old_libraries()
    assert library.path(library.hash).exists()
    assert again.mounted_library(allocation.id) == library.hash


def test_without_its_files_what_a_container_mounts_is_told_by_its_folder_unless_it_lies_elsewhere(
    store: Store, library: Library, source: Path, tmp_path: Path
) -> None:
    allocation = store.mint(UNITS)
    shutil.rmtree(tmp_path / f"state/{GPUS.resource}")
    assert new_store(tmp_path, library).mounted_library(allocation.id) == library.hash
    elsewhere = Library(tmp_path / "elsewhere", source)
    assert new_store(tmp_path, elsewhere).mounted_library(allocation.id) == ""
    assert store.mounted_library("gpu-of-a-time-when-it-was-not-told") == ""


def test_of_two_records_of_the_same_units_the_younger_is_live(tmp_path: Path, library: Library) -> None:
    records = Records(tmp_path / f"state/{GPUS.resource}")
    for age, name in enumerate(["gpu-young", "gpu-old"]):
        records.write(Allocation(name, UNITS, library.hash), "")
        os.utime(tmp_path / f"state/{GPUS.resource}/{name}/record.json", (1000 - age, 1000 - age))
    store = new_store(tmp_path, library)
    store.load()
    assert [allocation.id for allocation in store.ledger] == ["gpu-young"]
    assert store.leaving == {"gpu-old"}


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
    await Specs(tmp_path / "cdi", Settings(None), Devices(), [], Notices()).run(stop)
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


def test_a_preload_file_that_others_cannot_read_is_put_right(store: Store) -> None:
    allocation = store.mint(UNITS)
    file = store.files(allocation).preload_file
    file.chmod(0o600)
    store.put(allocation)
    assert mode(file) == 0o644


def test_a_preload_file_that_became_a_folder_is_put_right(store: Store) -> None:
    allocation = store.mint(UNITS)
    file = store.files(allocation).preload_file
    file.unlink()
    file.mkdir()
    store.put(allocation)
    assert file.read_text().startswith("/usr/lib/edgeshare/")
