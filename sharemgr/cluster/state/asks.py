"""What the containers of a pod ask for together, and which of them use the same devices one after the other."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import (
    GPU_AFFINITY,
    GPU_MEMORY_MIB,
    GPU_PERCENT,
)
from edgeshare.contract.units import (
    MAX_DEVICES_PER_ALLOCATION,
    UNITS_PER_DEVICE,
    parse_request_percent,
    peak,
)
from sharemgr.cluster.state.request import Ask

KNOWN = 256
"""Pods that ask for different things: those of a job ask for the same, and each is parsed when it asks and when it is
bound."""


class Asking(NamedTuple):
    """What one asks for of one kind of device."""

    name: str
    percent: int
    memory_mib: int
    """Of each device; 0: in proportion."""
    runs_along: bool
    """With those after it (edgeshare.kube.objects.pod_containers)."""
    kind: Accelerator = Accelerator.GPU

    @property
    def ask(self) -> Ask:
        """What it asks for, as the ledger has it."""
        return Ask(*parse_request_percent(self.percent), self.memory_mib, self.kind)


@lru_cache(KNOWN)
def asks_of(every: tuple[Asking, ...], together: bool) -> tuple[tuple[Ask, ...], tuple[tuple[Asking, ...], ...]]:
    """What is asked of the devices of one kind, and for which containers: one ask for each container, and for the plain
    init containers before it, whose units it takes over; where the pod's containers are to be ``together``, one for
    all."""
    if together and every:
        _check_together(every)
        groups = [list(every)]
    else:
        groups = _handed_on(every)
    asks = [_ask(group) for group in groups]
    units = sum(ask.devices * ask.units for ask in asks)
    if units > MAX_DEVICES_PER_ALLOCATION * UNITS_PER_DEVICE:
        most = f"{MAX_DEVICES_PER_ALLOCATION} {_words(every)}"
        raise InvalidRequest(f"its containers ask for {units} units in sum: no node has over {most}")
    least = sum(ask.devices for ask in asks if 2 * ask.units > UNITS_PER_DEVICE)
    if least > MAX_DEVICES_PER_ALLOCATION:
        raise InvalidRequest(
            f"its containers need {least} {_words(every)}, because no two that ask for over {UNITS_PER_DEVICE // 2} "
            f"units fit on one: no node has over {MAX_DEVICES_PER_ALLOCATION}"
        )
    return tuple(asks), tuple(map(tuple, groups))


def _words(every: Sequence[Asking]) -> str:
    """What people call the devices that these ask for."""
    return f"{KINDS[every[0].kind].word}s"


def _ask(group: list[Asking]) -> Ask:
    if len({bool(each.memory_mib) for each in group}) > 1:
        # What they need together would differ with the GPU.
        names = " and ".join(each.name for each in group)
        raise InvalidRequest(
            f"containers {names} have a GPU in common: name {GPU_MEMORY_MIB} for all of them or for none"
        )
    percent, memory_mib = (
        peak((size, each.runs_along) for each, size in sizes)
        for sizes in ([(each, each.percent) for each in group], [(each, each.memory_mib) for each in group])
    )
    return Ask(*parse_request_percent(percent), memory_mib, group[0].kind)


def _handed_on(every: Sequence[Asking]) -> list[list[Asking]]:
    """The containers, each with the plain init containers whose units it takes over."""
    groups: list[list[Asking]] = [[]]
    for each in every:
        groups[-1].append(each)
        if each.runs_along:
            groups.append([])
    if not groups[-1]:
        groups.pop()
    for group in groups:
        for place, each in enumerate(group):
            rest = min(group[place:], key=lambda later: later.percent)
            if rest.percent < each.percent and (each.ask.devices > 1 or _leaves(each, group, groups)):
                raise InvalidRequest(
                    f"init container {each.name} asks for {each.percent} units, and container {rest.name}, which takes "
                    f"them over, for {rest.percent}: what it leaves could go to no other, so ask for as many"
                )
    return groups


def _leaves(each: Asking, group: list[Asking], groups: list[list[Asking]]) -> bool:
    """Whether the kubelet would give some of its units to a container of another group."""
    return group is not groups[-1] and group[-1].percent < each.percent


def _check_together(every: Sequence[Asking]) -> None:
    for each in every:
        if each.ask.is_whole:
            raise InvalidRequest(
                f"container {each.name}: {GPU_PERCENT} is {each.percent}, and pods of label {GPU_AFFINITY} share one "
                f"GPU: ask for 1 to {UNITS_PER_DEVICE - 1}"
            )
    units = peak((each.percent, each.runs_along) for each in every)
    if units > UNITS_PER_DEVICE:
        names = " and ".join(each.name for each in every)
        raise InvalidRequest(
            f"containers {names} are to share a GPU (label {GPU_AFFINITY}) and ask for {units} units together: ask for "
            f"at most {UNITS_PER_DEVICE}"
        )
