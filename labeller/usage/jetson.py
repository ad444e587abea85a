"""Which Jetson this is."""

from pathlib import Path

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.boards import module_of
from edgeshare.inventory.jetson import JetsonInventory
from edgeshare.inventory.tree import DEVICETREE, Tree
from labeller.usage.readings import Identity


def identity(root: Path) -> Identity | None:
    """Its GPU, as the device plugin calls it; None on a machine that is none, or that cannot be made out."""
    try:
        found = JetsonInventory(0, root).devices()
    except Unavailable:
        # Without a serial number it cannot be shared, and is as busy all the same.
        return _nameless(root)
    return Identity(found[0].id, found[0].model) if found else None


def _nameless(root: Path) -> Identity | None:
    try:
        model = module_of(Tree(root).strings(f"{DEVICETREE}/compatible"))
    except Unavailable:
        model = None
    return Identity("", model) if model else None
