"""What containers are given of the node: files that any user can read, device nodes, CDI specs."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from deviceplugin.allocations.store import Store
from deviceplugin.inject.library import Library
from deviceplugin.units.ledger import Terms
from edgeshare.contract.errors import Unavailable
from tests.kit.deviceplugin.store import GPU, UNITS, WHOLE, mode, new_store


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
