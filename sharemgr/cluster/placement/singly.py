"""What ``options``, ``demand`` and the policy ``usable`` make of an ask, of one node at a time and in plain numbers:
for a few nodes arrays cost more to make than all that is in them. A score is the same to the last bit."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.demand import ALMOST_NONE, Demand, Ratio
from sharemgr.cluster.placement.placing import Part
from sharemgr.cluster.placement.policies.fgd import TIE_UNITS
from sharemgr.cluster.placement.table import NOBODY, Floats, Table
from sharemgr.cluster.state.request import Request

GPUS_MAX = 8
"""Of a node. Where there are more, numpy adds up their numbers in another order than the one of their places."""


NO_ROOM = -1
"""MiB."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a request gets on a node of a kind."""

    score: float
    parts: tuple[Part, ...]


class _Gpu(NamedTuple):
    """What a request makes of one."""

    usable: int
    """Units before."""
    is_idle: bool
    worth: float
    """Of these units."""
    worth_left: float
    """With the cores that the request leaves."""
    growth: float
    """Of that, where the GPU is taken."""
    need_mib: int
    """NO_ROOM: it may not hold a part."""
    model: int


class Judge:
    """By one demand."""

    def __init__(self, demand: Demand) -> None:
        self._levels: list[int] = demand.cpu_levels.tolist()
        self._of_gpu = _Worth(demand.priced.one)
        self._of_idle = _Worth(demand.priced.many)
        self._with_cpu = _usable_units(demand.cpu)
        self._with_ram = _usable_units(demand.ram)
        self._gpus: dict[tuple[Request, int, int], dict[tuple[int, ...], _Gpu]] = {}
        """By request, levels of cores before and after, and what is free: of GPUs, too, few differ."""

    def fit(self, table: Table, row: int, request: Request) -> Fit | None:
        """What a request of one ask, and no affinity, gets on the node of that row; None where it does not fit.
        kube-scheduler has found it to have the cores and RAM."""
        rows, (ask,) = table.rows, request.asks
        cpu_milli = max(int(rows.cpu_milli[row]), request.cpu_milli)
        ram_mib = max(int(rows.ram_mib[row]), request.ram_mib)
        cpu_left_milli, ram_left_mib = cpu_milli - request.cpu_milli, ram_mib - request.ram_mib
        before, after = bisect_right(self._levels, cpu_milli), bisect_right(self._levels, cpu_left_milli)
        known = self._gpus.setdefault((request, before, after), {})
        gpus = []
        columns = (rows.free_units, rows.free_mib, rows.total_mib, rows.model, rows.exclusion)
        for cell in zip(*(column[row].tolist() for column in columns), strict=True):
            gpu = known.get(cell)
            if gpu is None:
                gpu = known[cell] = self._gpu(table, request, before, after, *cell)
            gpus.append(gpu)
        places = [place for place, gpu in enumerate(gpus) if gpu.need_mib != NO_ROOM]
        if len(places) < ask.devices:
            return None
        idle = sum([gpu.is_idle for gpu in gpus])
        now = _sum([gpu.worth for gpu in gpus]) + self._of_idle.of(gpus[0].model, before, idle)
        gain = _sum([gpu.worth_left for gpu in gpus]) - now
        free_units, units = sum([gpu.usable for gpu in gpus]), ask.devices * ask.units
        stranded = self._stranded(free_units - units, cpu_left_milli, ram_left_mib)
        stranded -= self._stranded(free_units, cpu_milli, ram_mib)
        best, score = -1, 0.0
        seen: list[_Gpu] = []
        for place in places[:1] if ask.is_whole else places:
            gpu = gpus[place]
            if gpu in seen:
                continue
            seen.append(gpu)
            idle_after = idle - (ask.devices if ask.is_whole else gpu.is_idle)
            growth = gpu.growth + self._of_idle.of(gpu.model, after, idle_after) + gain
            found = growth - stranded - TIE_UNITS * idle_after
            if best < 0 or found > score:
                best, score = place, found
        taken = places[: ask.devices] if ask.is_whole else [best]
        return Fit(score, tuple(Part(place, ask.units, gpus[place].need_mib) for place in taken))

    def _gpu(self, table: Table, request: Request, before: int, after: int, *cell: int) -> _Gpu:
        free_units, free_mib, total_mib, model, exclusion = cell
        (ask,) = request.asks
        usable, need_mib = _usable(free_units, free_mib, total_mib), ask.needed_mib(total_mib)
        is_permitted = not request.models or table.models[model].name in request.models
        is_permitted &= exclusion in (NOBODY, table.exclusions.get(request.exclusion, NOBODY))
        has_room = is_permitted and free_units >= ask.units and free_mib >= need_mib
        left = 0
        if has_room and not ask.is_whole:
            left = max(_usable(free_units - ask.units, free_mib - need_mib, total_mib), 0)
        worth_left = self._of_gpu.of(model, after, usable)
        return _Gpu(
            usable,
            free_units == UNITS_PER_DEVICE,
            self._of_gpu.of(model, before, usable),
            worth_left,
            ask.devices * (self._of_gpu.of(model, after, left) - worth_left),
            need_mib if has_room else NO_ROOM,
            model,
        )

    def _stranded(self, free_units: int, cpu_milli: int, ram_mib: int) -> float:
        return free_units - min(self._with_cpu(free_units, cpu_milli), self._with_ram(free_units, ram_mib))


class _Worth:
    """One of demand.Worth's tables, of which plain numbers are made where it is looked at."""

    def __init__(self, table: Floats) -> None:
        self._table = table
        self._last = table.shape[2] - 1
        self._lists: dict[tuple[int, int], list[float]] = {}

    def of(self, model: int, level: int, amount: int) -> float:
        worths = self._lists.get((model, level))
        if worths is None:
            worths = self._lists[model, level] = self._table[model, level].tolist()
        worth: float = worths[min(amount, self._last)]
        return worth


def _usable_units(ratio: Ratio) -> Callable[[int, int], float]:
    """Its ``usable_units``."""
    per_unit, below, beyond = ratio.per_unit.tolist(), ratio.below.tolist(), ratio.beyond.tolist()

    def usable_units(free_units: int, left: int) -> float:
        place = bisect_right(per_unit, left / max(free_units, ALMOST_NONE))
        found: float = free_units * below[place] + left * beyond[place]
        return found

    return usable_units


def _usable(free_units: int, free_mib: int, total_mib: int) -> int:
    return min(free_units, free_mib * UNITS_PER_DEVICE // total_mib) if total_mib else free_units


def _sum(numbers: list[float]) -> float:
    """As numpy adds up so few."""
    if len(numbers) == GPUS_MAX:
        a, b, c, d, e, f, g, h = numbers
        return ((a + b) + (c + d)) + ((e + f) + (g + h))
    added = 0.0
    for number in numbers:
        added += number
    return added
