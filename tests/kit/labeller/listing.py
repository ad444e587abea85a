"""``python listing.py ROOT``: what the inventory lists of a machine, in sums, as JSON."""

import json
import sys
from pathlib import Path

from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.sources import Inventories, sources_of

devices = Inventories(sources_of(InventoryConfig(root=Path(sys.argv[1])))).devices()
found = [(device.accelerator, device.memory_mib) for device in devices]
sums = {
    "gpus": sum(kind == "gpu" for kind, _ in found),
    "memory_mib": sum(memory for kind, memory in found if kind == "gpu"),
    "edgetpus": sum(kind == "edgetpu" for kind, _ in found),
}
print(json.dumps(sums))
