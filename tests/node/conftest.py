"""A simulated machine and a manager for each test of this folder."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "cluster"))  # its cache of what is slow to fetch

from testbed import Manager, Testbed


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    """A machine of two GPUs with no manager yet. Its paths are short: a socket's path has 107 bytes."""
    root = Path(tempfile.mkdtemp(prefix="es-node-", dir="/dev/shm"))
    root.chmod(0o755)
    testbed = Testbed(root)
    yield testbed
    testbed.close()
    shutil.rmtree(root)


@pytest.fixture
def manager(testbed: Testbed) -> Manager:
    """A manager with the default configuration."""
    return testbed.manager()
