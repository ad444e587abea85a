"""What ``options``, ``demand`` and the policy ``usable`` make of an ask, of one node at a time and in plain numbers:
for a few nodes arrays cost more to make than all that is in them. A score is the same to the last bit."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.demand import ALMOST_NONE, Demand, Ratio
from sharemgr.cluster.placement.policies.fgd import TIE_UNITS
from sharemgr.cluster.placement.rows import NO_GPU, Floats, Gpu, Row
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.eligibility import NOBODY, has_room, is_exclusion, is_model
from sharemgr.cluster.state.request import Request

GPUS_MAX = 8
"""Of a node. Where there are more, numpy adds up their numbers in another order than the one of their places."""

NO_ROOM = float("-inf")


class Fit(NamedTuple):
    """What a request of one ask gets on a node of a kind."""

    score: float
    places: list[int]
    """Of the devices, among those of their kind and node."""


class _Node(NamedTuple):
    """What there is to know of a kind of node, with so much of cores and RAM, whatever is asked for."""

    gpus: tuple[Gpu, ...]
    """One for each column."""
    first: list[int]
    """The place of the first of those that are alike: few differ."""
    like: list[int]
    """Of each, which of these it is like."""
    idle: list[int]
    """The places of those of which nobody has a part."""
    most_units: int
    """Free of one."""
    usable: list[int]
    """Units of each that is the first."""
    usable_units: int
    """Of all."""
    worth: float
    """Of the units and the idle GPUs."""
    stranded: float
    """Units that will find no cores, or no RAM."""
    worths: dict[int, float]
    """Of the units alone, by the level that cores reach."""


class Sums:
    """What one demand makes of nodes, whatever is asked for."""

    def __init__(self, demand: Demand, width: int) -> None:
        self._levels: list[int] = demand.cpu_levels.tolist()
        self.of_gpu = _Worth(demand.priced.one)
        self.of_idle = _Worth(demand.priced.many)
        self._with_cpu = _usable_units(demand.cpu)
        self._with_ram = _usable_units(demand.ram)
        self._width = width
        self._nodes: dict[tuple[int, int, int], _Node] = {}

    def level(self, cpu_milli: int) -> int:
        """How many of the levels so many millicores reach."""
        return bisect_right(self._levels, cpu_milli)

    def node(self, kind: int, row: Row, cpu_milli: int, ram_mib: int) -> _Node:
        """One of that kind, whose row this is, were its cores and RAM so much."""
        node = self._nodes.get((kind, cpu_milli, ram_mib))
        if node is None:
            node = self._nodes[kind, cpu_milli, ram_mib] = self._node(row, cpu_milli, ram_mib)
        return node

    def worth(self, node: _Node, level: int) -> float:
        """Of all its units, where its cores reach that level."""
        worth = node.worths.get(level)
        if worth is None:
            worth = node.worths[level] = self._worth(node.gpus, node.first, node.like, node.usable, level)
        return worth

    def stranded(self, free_units: int, cpu_milli: int, ram_mib: int) -> float:
        """Of so many units of a node, those that will find no cores, or no RAM."""
        return free_units - min(self._with_cpu(free_units, cpu_milli), self._with_ram(free_units, ram_mib))

    def _node(self, row: Row, cpu_milli: int, ram_mib: int) -> _Node:
        gpus = (*row.gpus, *[NO_GPU] * (self._width - len(row.gpus)))
        numbers: dict[Gpu, int] = {}
        # By their numbers from here on: to look for a GPU takes longer than all else that is done with it.
        like = [numbers.setdefault(gpu, len(numbers)) for gpu in gpus]
        first = [like.index(number) for number in range(len(numbers))]
        idle = [place for place, gpu in enumerate(gpus) if gpu.free_units == UNITS_PER_DEVICE]
        usable = [_usable(gpu.free_units, gpu.free_mib, gpu.total_mib) for gpu in numbers]
        usable_units = sum([usable[number] for number in like])
        level = self.level(cpu_milli)
        worth = self._worth(gpus, first, like, usable, level)
        return _Node(
            gpus,
            first,
            like,
            idle,
            max([gpu.free_units for gpu in numbers]),
            usable,
            usable_units,
            worth + self.of_idle.of(gpus[0].model, level, len(idle)),
            self.stranded(usable_units, cpu_milli, ram_mib),
            {level: worth},
        )

    def _worth(
        self, gpus: Sequence[Gpu], first: Sequence[int], like: Sequence[int], usable: Sequence[int], level: int
    ) -> float:
        of = self.of_gpu.of
        of_each = [of(gpus[place].model, level, units) for place, units in zip(first, usable, strict=True)]
        return _sum([of_each[number] for number in like])


class Judge:
    """Judges nodes for a request of one ask, and no affinity."""

    def __init__(self, sums: Sums, table: Table, request: Request) -> None:
        self._sums = sums
        self._table = table
        self._request = request
        (self._ask,) = request.asks
        self._growths: dict[int, dict[Gpu, float]] = {}
        """By the level that cores reach afterwards."""

    def fit(self, kind: int, row: Row) -> Fit | None:
        """What the request gets on a node of that kind, whose row this is; None where it does not fit. kube-scheduler
        has found the node to have the cores and RAM."""
        sums, request, ask = self._sums, self._request, self._ask
        cpu_milli, ram_mib = max(row.cpu_milli, request.cpu_milli), max(row.ram_mib, request.ram_mib)
        node = sums.node(kind, row, cpu_milli, ram_mib)
        if node.most_units < ask.units:
            return None
        cpu_milli, ram_mib = cpu_milli - request.cpu_milli, ram_mib - request.ram_mib
        level = sums.level(cpu_milli)
        growths = self._growths.setdefault(level, {})
        gpus, idle = node.gpus, len(node.idle)
        places = []
        growth_at = {}
        for place in node.idle if ask.is_whole else node.first:
            gpu = gpus[place]
            growth = growths.get(gpu)
            if growth is None:
                growth = growths[gpu] = self._growth(level, gpu)
            if growth != NO_ROOM:
                places.append(place)
                growth_at[place] = growth
        if len(places) < ask.devices:
            return None
        gain = sums.worth(node, level) - node.worth
        stranded = sums.stranded(node.usable_units - ask.devices * ask.units, cpu_milli, ram_mib) - node.stranded
        best, score = -1, 0.0
        for place in places[:1] if ask.is_whole else places:
            gpu = gpus[place]
            idle_after = idle - (ask.devices if ask.is_whole else gpu.free_units == UNITS_PER_DEVICE)
            growth = growth_at[place] + sums.of_idle.of(gpu.model, level, idle_after) + gain
            found = growth - stranded - TIE_UNITS * idle_after
            if best < 0 or found > score:
                best, score = place, found
        return Fit(score, places[: ask.devices] if ask.is_whole else [best])

    def _growth(self, level: int, gpu: Gpu) -> float:
        """By how much GPUs are worth more where as many like this are taken as are asked for; NO_ROOM where it may hold
        no part, or has no room for one."""
        request, ask, of_gpu = self._request, self._ask, self._sums.of_gpu
        need_mib = ask.needed_mib(gpu.total_mib)
        is_permitted = is_model(request.models, self._table.models[gpu.model].name)
        is_permitted &= is_exclusion(self._table.exclusions.get(request.exclusion, NOBODY), gpu.exclusion)
        if not is_permitted or not has_room(gpu.free_units, gpu.free_mib, ask.units, need_mib):
            return NO_ROOM
        left = 0
        if not ask.is_whole:
            left = max(_usable(gpu.free_units - ask.units, gpu.free_mib - need_mib, gpu.total_mib), 0)
        usable = _usable(gpu.free_units, gpu.free_mib, gpu.total_mib)
        return ask.devices * (of_gpu.of(gpu.model, level, left) - of_gpu.of(gpu.model, level, usable))


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
    """A ratio's ``usable_units``, of plain numbers."""
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
