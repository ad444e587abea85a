"""A store with the hook's library in place."""

from pathlib import Path

import pytest

from deviceplugin.allocations.store import Store
from deviceplugin.inject.library import Library
from tests.kit.deviceplugin.store import new_store


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
