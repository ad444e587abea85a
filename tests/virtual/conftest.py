"""A process that simulates cases for each worker of a run of the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.virtual.world import World, build_libraries, reason_not_to


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips, with the reason, what this machine cannot simulate."""
    reason = reason_not_to()
    if reason is not None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The virtual machine and the programs, built."""
    return build_libraries()


@pytest.fixture(scope="session")
def world(libraries: Path) -> Iterator[World]:
    world = World(libraries)
    yield world
    world.close()
