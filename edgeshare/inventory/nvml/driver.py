"""Which version NVIDIA's driver is of."""

import pynvml

from edgeshare.inventory.nvml.library import said


def driver_version() -> str:
    """As its library says, while an inventory has that open; empty where it does not say."""
    return said(pynvml.nvmlSystemGetDriverVersion, without="its version is not known") or ""
