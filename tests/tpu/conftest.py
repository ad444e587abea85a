"""A simulated machine with EdgeTPUs, and a manager that shares them."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "node"))  # the testbed: a machine with the real manager
sys.path.append(str(Path(__file__).parents[1] / "cluster"))  # its cache of what is slow to fetch

from lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A machine with one EdgeTPU on PCIe and one on the USB, and no manager yet."""
    root = Path(tempfile.mkdtemp(prefix="es-tpu-", dir="/dev/shm"))
    root.chmod(0o755)
    lab = Lab(root)
    yield lab
    lab.close()
    shutil.rmtree(root)
