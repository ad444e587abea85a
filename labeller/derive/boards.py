"""What board a machine is: our labels of a Jetson, and those that k8s-dt-node-labeller makes of a devicetree."""

from collections import Counter
from collections.abc import Iterable

from edgeshare.contract.labels import label_names, label_value
from edgeshare.inventory.boards import module_of
from labeller import names
from labeller.facts import DevicetreeNode, JetsonFacts

VENDORS = {"xlnx": "xilinx"}
"""Makers that k8s-dt-node-labeller spells in another way."""


def module_label(facts: JetsonFacts) -> str:
    """``Jetson-Orin-Nano``; of one that is not known here, what the devicetree calls it."""
    return label_value((module_of(facts.compatible) or facts.model).removeprefix("NVIDIA "))


def jetson_labels(facts: JetsonFacts | None) -> dict[str, str]:
    """Module, model, processor and release, those that are known; none on another machine."""
    if facts is None:
        return {}
    soc = next((name for name in facts.compatible if name.startswith("nvidia,tegra")), "")
    told = {
        names.JETSON_MODULE: module_label(facts),
        names.JETSON_MODEL: label_value(facts.model),
        names.JETSON_SOC: label_value(soc.removeprefix("nvidia,")),
        names.JETSON_RELEASE: label_value(facts.release),
    }
    return {name: value for name, value in told.items() if value}


def devicetree_labels(nodes: Iterable[DevicetreeNode]) -> dict[str, str]:
    """``beta.devicetree.org/<vendor>-<part>=<count>``: one a compatible string, with the number of nodes that have it.
    (adaptant-labs/k8s-dt-node-labeller, main.go: propertyNormalize, walkNode.)"""
    counts = Counter(_joined(compatible) for node in nodes for compatible in node.compatible)
    # They hand on what no label can hold, such as the "+" of a carrier with its module, and are refused then.
    return {name: str(counts[text]) for text, name in label_names(counts, names.DEVICETREE).items()}


def _joined(compatible: str) -> str:
    """``nvidia,tegra210`` → ``nvidia-tegra210``. As k8s-dt-node-labeller, it forgets what follows a second comma."""
    vendor, *parts = compatible.split(",")
    return f"{VENDORS.get(vendor, vendor)}-{parts[0]}" if parts else vendor
