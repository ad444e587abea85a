"""All labels of a machine."""

from dataclasses import dataclass

from labeller.derive import accelerators, devicetree, gpus, jetson, reactor, shares
from labeller.facts import Facts


@dataclass(frozen=True)
class Switches:
    """Which of the names that are not ours are written, and what else the configuration decides; see there."""

    reactor_names: bool = True
    devicetree_names: bool = True
    legacy_l4t: bool = False
    jetson_reserve_mib: int = 1024


def labels_of(facts: Facts, switches: Switches) -> dict[str, str]:
    """Name → value, by name; all of them valid."""
    labels = jetson.labels_of(facts.jetson) | accelerators.labels_of(facts.corals, facts.buses)
    labels |= gpus.labels_of(facts) | shares.labels_of(facts, switches.jetson_reserve_mib)
    if switches.reactor_names:
        labels |= reactor.labels_of(facts, switches.legacy_l4t)
    if switches.devicetree_names:
        labels |= devicetree.labels_of(facts.devicetree)
    return dict(sorted(labels.items()))
