"""All labels of a machine together."""

import pytest

from edgeshare.contract.errors import Unavailable
from labeller.config import Config
from labeller.facts import BusFacts, DevicetreeNode, Facts
from labeller.labels import LABELS_MAX, labels_of


def accelerators(count: int) -> tuple[BusFacts, ...]:
    """Each of a maker of its own; of each there are two labels."""
    return tuple(BusFacts("pci", f"0000:{number:04x}:00.0", "1200", f"{number:04x}", "0001") for number in range(count))


def test_a_machine_has_labels_in_bounds() -> None:
    most = Facts(buses=accelerators(LABELS_MAX // 2))
    assert len(labels_of(most, Config().switches())) == LABELS_MAX
    one_more = Facts(buses=most.buses, devicetree=(DevicetreeNode("", ("nvidia,tegra210",)),))
    with pytest.raises(Unavailable, match=r"has 1001 labels, and none is written of more than 1000"):
        labels_of(one_more, Config().switches())
    assert len(labels_of(one_more, Config(devicetree_names=False).switches())) == LABELS_MAX
