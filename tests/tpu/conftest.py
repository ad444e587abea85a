"""A simulated machine with EdgeTPUs, and a manager that shares them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "node"))  # the testbed: a machine with the real manager

from testbed import in_own_folder
from tpu_lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A machine with one EdgeTPU on PCIe and one on the USB, and no manager yet."""
    with in_own_folder(Lab, "es-tpu-") as lab:
        yield lab
