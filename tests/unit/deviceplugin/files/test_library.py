"""The hook's library on the node: put in place, kept as long as an allocation has it, and removed."""

import os
import shutil
from pathlib import Path

import pytest

from deviceplugin.allocations.records import Records
from deviceplugin.allocations.store import Store
from deviceplugin.inject.library import Library
from deviceplugin.units.ledger import Allocation, Ledger
from edgeshare.contract.accelerator_kind import EDGETPU as EDGETPUS
from edgeshare.contract.accelerator_kind import GPU as GPUS
from edgeshare.contract.errors import Unavailable
from tests.kit.deviceplugin.store import UNITS, WHOLE, mode, new_store, newer


def test_an_installed_library_is_left_as_it_is(library: Library) -> None:
    before = library.path(library.hash).stat()
    library.install()
    assert library.path(library.hash).stat() == before


def test_another_version_lies_beside_the_first(library: Library, source: Path, tmp_path: Path) -> None:
    second = newer(tmp_path / "state/hook", source)
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


@pytest.mark.parametrize("left", [b"first versio", b""])
def test_a_damaged_library_of_another_version_keeps_its_container_from_starting(
    library: Library, source: Path, tmp_path: Path, left: bytes
) -> None:
    second = newer(tmp_path / "state/hook", source)
    first = library.path(library.hash)
    first.chmod(0o755)
    first.write_bytes(left)
    with pytest.raises(Unavailable, match="or damaged: make the pod anew"):
        second.check(library.hash)


def test_an_old_library_goes_with_the_last_allocation_that_has_it(
    store: Store, library: Library, source: Path, tmp_path: Path
) -> None:
    first = library.path(library.hash)
    older = [store.mint(UNITS), store.mint(WHOLE - UNITS)]
    second = newer(tmp_path / "state/hook", source)
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
    second = newer(folder, source)
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
    second = newer(tmp_path / "state/hook", source)
    second.all_known = True
    again = new_store(tmp_path, second)
    again.load()
    again.remove_old_libraries()
    assert library.path(library.hash).exists()


def test_a_library_that_a_container_of_another_kind_mounts_stays(
    tmp_path: Path, library: Library, source: Path
) -> None:
    second = newer(tmp_path / "state/hook", source)
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


@pytest.mark.parametrize("content", ["{", '{"id": 1}'])
def test_the_library_of_a_record_that_cannot_be_read_stays(
    store: Store, library: Library, source: Path, tmp_path: Path, content: str
) -> None:
    allocation = store.mint(UNITS)
    (tmp_path / f"state/{GPUS.resource}/{allocation.id}/record.json").write_text(content)
    second = newer(tmp_path / "state/hook", source)
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
