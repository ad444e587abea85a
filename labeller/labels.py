"""All labels of a machine."""

from dataclasses import dataclass

from edgeshare.contract.errors import Unavailable
from labeller.derive import accelerators, boards, gpus, reactor, shares
from labeller.facts import Facts

LABELS_MAX = 1_000
"""Sixteen GPUs, each divided in seven ways, and the longest devicetree that is read make 500 or so. A Node that had
many more would be too large for the API server, to whoever else writes it, too."""


@dataclass(frozen=True)
class Switches:
    """Which of the names that are not ours are written, and what else the configuration decides; see there."""

    reactor_names: bool
    devicetree_names: bool
    legacy_l4t: bool
    jetson_reserve_mib: int


def labels_of(facts: Facts, switches: Switches) -> dict[str, str]:
    """Name → value, by name; all of them valid. Raises Unavailable where there are more than any machine has."""
    labels = boards.jetson_labels(facts.jetson) | accelerators.labels_of(facts.corals, facts.buses)
    labels |= gpus.labels_of(facts) | shares.labels_of(facts, switches.jetson_reserve_mib)
    if switches.reactor_names:
        labels |= reactor.labels_of(facts, switches.legacy_l4t)
    if switches.devicetree_names:
        labels |= boards.devicetree_labels(facts.devicetree)
    if len(labels) > LABELS_MAX:
        raise Unavailable(
            f"the machine has {len(labels)} labels, and none is written of more than {LABELS_MAX}: "
            "leave out the source that finds so many (sources)"
        )
    return dict(sorted(labels.items()))
