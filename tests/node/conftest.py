"""A simulated machine and a manager for each test of this folder."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from testbed import Manager, Testbed, in_own_folder


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    """A machine of two GPUs with no manager yet."""
    with in_own_folder(Testbed, "es-node-") as testbed:
        yield testbed


@pytest.fixture
def manager(testbed: Testbed) -> Manager:
    """A manager with the default configuration."""
    return testbed.manager()
