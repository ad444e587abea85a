"""Whether a device may take a part of a pod: each rule once, whoever asks.

| rule | where |
|---|---|
| it is of the kind that is asked for | ``Node.of`` |
| its model is one of those that the pod named | ``is_model`` |
| where pods of the pod's affinity have a device, it is that one | ``is_together`` |
| nobody of another exclusion has a part of it | ``is_exclusion``, of what ``held_by`` makes of those who have one |
| it is healthy: of another there is nothing to be had | ``obtainable`` |
| it has the units and the memory | ``has_room`` |

filter, prioritize and bind hold the devices of all nodes to them, as arrays (``placement/options.py``, ``placing.py``)
or one node at a time (``few_nodes.py``); preempt those of a node as they would be without some pods
(``preemption.py``); what is reserved (``ledger.py``) the one device that was chosen. ``reasons.py`` words an
``Objection``.
"""

from collections.abc import Collection, Set
from enum import Enum
from typing import TYPE_CHECKING, Any, overload

from sharemgr.cluster.state.nodes import Device
from sharemgr.cluster.state.request import Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOBODY = -1
"""The exclusion of a device that no pod holds a part of."""

SEVERAL = -2
"""The exclusion of a device on which pods of several came together: somebody else chose it for them."""


class Objection(Enum):
    """Why a device may not take a part of a pod, however small; of several the first is told."""

    MODEL = "model"
    AFFINITY = "affinity"
    EXCLUSION = "exclusion"
    HEALTH = "health"


def objection(
    request: Request, node: str, device: Device, exclusions: Collection[str], together: Collection[tuple[str, str]]
) -> Objection | None:
    """What speaks against a node's device, of which pods of these exclusions have parts, while pods of the request's
    affinity are ``together`` on those devices (node, device); None: nothing but its room."""
    if not is_model(request.models, device.model):
        return Objection.MODEL
    if not is_together(together, node, device.id):
        return Objection.AFFINITY
    if not is_exclusion(request.exclusion, held_by(exclusions)):
        return Objection.EXCLUSION
    return None if device.healthy else Objection.HEALTH


def is_model(models: Set[str], model: str) -> bool:
    """Whether a model is one of those that will do; where none is named, any."""
    return not models or model in models


def is_together(together: Collection[tuple[str, str]], node: str, device_id: str) -> bool:
    """Whether a device is where the pods of an affinity are; the first of them may go to any."""
    return not together or (node, device_id) in together


def held_by(exclusions: Collection[str]) -> str | int:
    """The exclusion of a device of which pods of these have parts: theirs, NOBODY or SEVERAL."""
    if len(exclusions) > 1:
        return SEVERAL
    return next(iter(exclusions), NOBODY)


@overload
def is_exclusion(own: str | int, there: str | int) -> bool: ...
@overload
def is_exclusion(own: int, there: "NDArray[np.int64]") -> "NDArray[np.bool_]": ...
def is_exclusion(own: str | int, there: Any) -> Any:
    """Whether a pod of one exclusion may have a part of a device of that one, or of each of many: by their names, or by
    numbers that stand for them."""
    return (there == NOBODY) | (there == own)


def obtainable(device: Device, units: int, memory_mib: int) -> tuple[int, int]:
    """Units and MiB that a pod can get of a device of which so much is free: less than 0 where pods hold too much."""
    return (max(0, units), max(0, memory_mib)) if device.healthy else (0, 0)


@overload
def has_room(free_units: int, free_mib: int, units: int, memory_mib: int) -> bool: ...
@overload
def has_room(
    free_units: "NDArray[np.int64]", free_mib: "NDArray[np.int64]", units: int, memory_mib: "NDArray[np.int64]"
) -> "NDArray[np.bool_]": ...
def has_room(free_units: Any, free_mib: Any, units: int, memory_mib: Any) -> Any:
    """Whether a device, or each of many, of which so much is ``obtainable`` has as much."""
    return (free_units >= units) & (free_mib >= memory_mib)
