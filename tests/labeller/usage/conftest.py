"""Machines whose use is watched, for the tests of this folder."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2] / "node"))  # a Prometheus
sys.path.append(str(Path(__file__).parents[2] / "cluster"))  # its cache of what is slow to fetch

from watched import Machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    """One with no accelerator yet."""
    root = Path(tempfile.mkdtemp(prefix="es-usage-", dir="/dev/shm"))
    machine = Machine(root)
    yield machine
    machine.end()
    shutil.rmtree(root)
