"""What allocations have had in all, as somebody looks again and again: these sums only grow.

**Energy.** Of what a device consumed between two looks, what it takes while nobody uses it is nobody's, for as much of
the time as was used by nobody; the rest is divided by the GPU time of its allocations. What it takes then is the least
that was seen; before anything was, as much as on the mean of those two looks. Who has a device whole has all of its
energy. What processes take of which nobody knows is told as others', or as nobody's while there are none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from sharemgr.node.machine.allocations import Allocation
from sharemgr.node.machine.observer import Observation
from sharemgr.node.turns.account import Account


@dataclass(slots=True)
class Total:
    """What one allocation has had since it was added or the manager began."""

    held_ns: int = 0
    gpu_ns: int = 0
    waited_ns: int = 0
    energy_mj: dict[str, float] = field(default_factory=dict)
    """By device id, of those whose driver tells it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What was known of a device at one look."""

    at_ns: int
    energy_mj: int
    gpu_ns: Mapping[str, int]
    """Of its allocations."""


class Totals:
    """What all allocations and devices of one node have had."""

    def __init__(self) -> None:
        self._by_id: dict[str, Total] = {}
        self._marks: dict[str, Mark] = {}
        # By device id, what it takes while nobody uses it: mJ a ns.
        self._idle: dict[str, float] = {}

    def take_in(self, allocation_id: str, account: Account, exclusive: bool) -> Total:
        """What an allocation has had, by its account as of now; of an ``exclusive`` device nobody says what of the time
        that it was held it worked. What an account takes back is waited for."""
        total = self._by_id.setdefault(allocation_id, Total())
        total.held_ns = max(total.held_ns, account.all_held_ns)
        total.gpu_ns = max(total.gpu_ns, account.all_held_ns if exclusive else account.all_gpu_ns)
        total.waited_ns = max(total.waited_ns, account.all_waited_ns)
        return total

    def look(self, observation: Observation, allocations: Iterable[Allocation]) -> None:
        """Divides what devices have consumed since the last look, by what was last taken in of the allocations."""
        on: dict[str, list[Allocation]] = {device_id: [] for device_id in observation.energy_mj}
        for allocation in allocations:
            for device_id in on.keys() & allocation.device_ids:
                on[device_id].append(allocation)
        for device_id, energy_mj in observation.energy_mj.items():
            totals = {each.id: self._by_id.setdefault(each.id, Total()) for each in on[device_id]}
            mark = Mark(observation.began_at_ns, energy_mj, {each: total.gpu_ns for each, total in totals.items()})
            last, self._marks[device_id] = self._marks.get(device_id), mark
            for total in totals.values():
                total.energy_mj.setdefault(device_id, 0)
            # A driver that was loaded anew begins at 0.
            if last is not None and mark.energy_mj >= last.energy_mj and mark.at_ns > last.at_ns:
                for each, part_mj in self._divided(device_id, last, mark, on[device_id]).items():
                    totals[each].energy_mj[device_id] += part_mj

    def forget(self, allocation_id: str) -> None:
        """The allocation is gone; another may come by its id."""
        self._by_id.pop(allocation_id, None)

    def _divided(self, device_id: str, last: Mark, mark: Mark, allocations: list[Allocation]) -> dict[str, float]:
        spent_mj, elapsed_ns = mark.energy_mj - last.energy_mj, mark.at_ns - last.at_ns
        whole = [each.id for each in allocations if each.request_percent == 100]
        if whole:
            return {each: spent_mj for each in whole if each in last.gpu_ns}
        used_ns = {each: max(0, ns - last.gpu_ns.get(each, 0)) for each, ns in mark.gpu_ns.items()}
        all_ns, mean = sum(used_ns.values()), spent_mj / elapsed_ns
        if not all_ns:
            self._idle[device_id] = min(self._idle.get(device_id, inf), mean)
            return {}
        idle_mj = min(self._idle.get(device_id, inf), mean) * max(0, elapsed_ns - all_ns)
        return {each: (spent_mj - idle_mj) * ns / all_ns for each, ns in used_ns.items()}
