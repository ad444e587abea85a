"""Machines whose use is watched, for the tests of this folder."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.labeller.watched import Machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    """One with no accelerator yet."""
    root = Path(tempfile.mkdtemp(prefix="es-usage-", dir="/dev/shm"))
    machine = Machine(root)
    yield machine
    machine.end()
    shutil.rmtree(root)
