"""A simulated machine and a manager for each test of this folder."""

from collections.abc import Iterator

import pytest

from edgeshare.client import ManagerClient
from tests.kit.manager.testbed import Manager, Testbed, in_own_folder


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    """A machine of two GPUs with no manager yet."""
    with in_own_folder(Testbed, "es-node-") as testbed:
        yield testbed


@pytest.fixture
def manager(testbed: Testbed) -> Manager:
    """A manager with the default configuration."""
    return testbed.manager()


@pytest.fixture
def calls(testbed: Testbed, manager: Manager) -> Iterator[ManagerClient]:
    """Asks that manager."""
    with testbed.calls() as calls:
        yield calls
