"""How the ``edgeshare`` command loads a subcommand."""

import gc
import os
from collections.abc import Iterator

import pytest

from edgeshare.cli import WHILE_LOADING, loading


@pytest.fixture(autouse=True)
def nothing_stays_permanent() -> Iterator[None]:
    yield
    # But for what the run of the tests holds until its end (tests/conftest.py).
    gc.unfreeze()
    gc.freeze()


def test_libraries_read_its_variables_and_nobody_inherits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WHILE_LOADING:
        monkeypatch.delenv(name, raising=False)
    with loading():
        assert os.environ.items() >= WHILE_LOADING.items()
    assert not os.environ.keys() & WHILE_LOADING.keys()


def test_none_stays_where_loading_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WHILE_LOADING:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModuleNotFoundError), loading():
        raise ModuleNotFoundError
    assert not os.environ.keys() & WHILE_LOADING.keys()


@pytest.mark.parametrize("name", WHILE_LOADING)
def test_what_somebody_set_stays(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "asked for")
    with loading():
        assert os.environ[name] == "asked for"
    assert os.environ[name] == "asked for"


def test_the_collector_does_not_walk_over_what_was_loaded() -> None:
    with loading():
        loaded: list[list[str]] = [[] for _ in range(1000)]
    # What is permanent is not among these.
    walked_over = {id(each) for each in gc.get_objects()}
    assert walked_over.isdisjoint(map(id, loaded))
