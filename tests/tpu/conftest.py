"""A simulated machine with EdgeTPUs, and a manager that shares them."""

from collections.abc import Iterator

import pytest

from tests.kit.manager.testbed import in_own_folder
from tests.kit.tpu.tpu_lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A machine with one EdgeTPU on PCIe and one on the USB, and no manager yet."""
    with in_own_folder(Lab, "es-tpu-") as lab:
        yield lab
