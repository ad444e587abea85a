"""The labels that k8s-dt-node-labeller makes of a devicetree: ``beta.devicetree.org/<vendor>-<part>=<count>``.

(adaptant-labs/k8s-dt-node-labeller, main.go: propertyNormalize, walkNode.)"""

from collections import Counter
from collections.abc import Iterable

from edgeshare.contract.labels import label_names
from labeller import names
from labeller.facts import DevicetreeNode

VENDORS = {"xlnx": "xilinx"}
"""Makers that they spell in another way."""


def labels_of(nodes: Iterable[DevicetreeNode]) -> dict[str, str]:
    """One a compatible string, with the number of nodes that have it."""
    counts = Counter(_joined(compatible) for node in nodes for compatible in node.compatible)
    # They hand on what no label can hold, such as the "+" of a carrier with its module, and are refused then.
    return {name: str(counts[text]) for text, name in label_names(counts, names.DEVICETREE).items()}


def _joined(compatible: str) -> str:
    """``nvidia,tegra210`` → ``nvidia-tegra210``. Like theirs, it forgets what follows a second comma."""
    vendor, *parts = compatible.split(",")
    return f"{VENDORS.get(vendor, vendor)}-{parts[0]}" if parts else vendor
