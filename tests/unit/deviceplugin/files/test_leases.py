"""A process of a container may take a lease of a file that it has mounted, read only or not, and whose owner it is: who
opens that file waits for as long as 45 s. Neither the plugin nor another container's program has to."""

from dataclasses import replace
from pathlib import Path

import pytest

from deviceplugin.allocations.store import MOUNTED, Store
from deviceplugin.inject.library import Library
from edgeshare.bounded_file import read
from edgeshare.contract.errors import Unavailable
from tests.kit.deviceplugin.store import UNITS, newer
from tests.kit.processes.lease import leased


def test_of_a_file_that_nobody_has_open_a_lease_is_had_and_it_is_not_waited_for(tmp_path: Path) -> None:
    # Why all of this is needed.
    path = tmp_path / "file"
    path.write_text("text")
    with leased(path) as taken:
        assert taken
        with pytest.raises(BlockingIOError):
            read(path, 100)


def test_no_container_can_take_a_lease_of_the_library_that_all_of_them_start_with(
    library: Library, source: Path, tmp_path: Path
) -> None:
    second = newer(tmp_path / "state/hook", source)
    second.check(library.hash)
    for each in (library.hash, second.hash):
        with leased(second.path(each)) as taken:
            assert not taken


def test_a_library_of_which_one_has_a_lease_is_put_in_place_anew(library: Library, source: Path) -> None:
    path = library.path(library.hash)
    # Nobody has this one open, as while the plugin is away.
    path.unlink()
    path.write_bytes(source.read_bytes())
    path.chmod(0o555)
    before = path.stat().st_ino
    with leased(path) as taken:
        assert taken
        library.check(library.hash)
        assert path.stat().st_ino != before
        assert path.read_bytes() == b"first version"


def test_another_versions_library_of_which_one_has_a_lease_keeps_its_container_from_starting_while_it_has(
    library: Library, source: Path, tmp_path: Path
) -> None:
    second = newer(tmp_path / "state/hook", source)
    path = library.path(library.hash)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    with leased(path) as taken:
        assert taken
        with pytest.raises(Unavailable, match="a process has a lease of it"):
            second.check(library.hash)
    second.check(library.hash)


def test_what_lies_in_an_allocations_folder_is_not_waited_for(store: Store, tmp_path: Path) -> None:
    allocation = store.mint(UNITS)
    folder = store.files(allocation).socket_folder
    before = (folder / MOUNTED).read_text()
    with leased(folder / MOUNTED) as taken:
        assert taken
        assert store.mounted_library(allocation.id) == allocation.library
        store.put(replace(allocation))
        assert (folder / MOUNTED).read_text() == before
    with leased(store.files(allocation).preload_file) as taken:
        assert taken
        assert store.mounted_library(allocation.id) == allocation.library
