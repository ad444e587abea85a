"""Where an image is made."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.programs.cache import scratch_dir


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for what is thrown away after the test."""
    with tempfile.TemporaryDirectory(dir=scratch_dir(), prefix="edgeshare-test-image-") as folder:
        yield Path(folder)
