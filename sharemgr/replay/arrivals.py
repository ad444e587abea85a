"""Replays a trace of pods against the ledger and a policy: arrivals only, in a random order, beyond what the GPUs hold.

The experiment is that of FGD's authors (Weng et al., USENIX ATC 2023; what the paper leaves open is as in their
simulator, github.com/hkust-adsl/kubernetes-scheduler-simulator): the pods of the trace are shuffled, then more are
drawn from it with replacement until they ask for 130 % of the GPUs. A pod that fits nowhere is turned down for good.
Nodes' cores and RAM bind as their GPUs do. A pod without a GPU is placed by the policy, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.placing import choose
from sharemgr.cluster.placement.policies import Policy
from sharemgr.cluster.placement.policies.fgd import node_worth
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Inventory
from sharemgr.cluster.state.request import Request

SEEDS = range(42, 52)
ARRIVAL_PERCENT_MAX = 130
REPORTED_PERCENT = (90, 95, 100, 110, 120, 130)


@dataclass(frozen=True, slots=True)
class Moment:
    """How things stand after an arrival, in percent of all units."""

    arrived_percent: float
    allocated_percent: float
    fragmented_percent: float | None
    """The free units that the next pod could not use, in the mean over the trace's shapes; told once a percent."""


def capacity_units(nodes: Sequence[Inventory]) -> int:
    """The units of all GPUs."""
    return UNITS_PER_DEVICE * sum(len(node.devices) for node in nodes)


def arrivals(pods: Sequence[Request], units: int, seed: int) -> list[Request]:
    """The pods in the order in which they come, as many as ask for 130 % of ``units``; fewer than the trace has where
    it asks for more. Raises InvalidRequest where no pod asks for a GPU."""
    asked = sum(pod.units for pod in pods)
    most = units * ARRIVAL_PERCENT_MAX // 100
    if not asked:
        raise InvalidRequest("no pod of the trace asks for a GPU: nothing can be measured")
    random = Random(seed)
    order = list(pods)
    random.shuffle(order)
    while asked > most:
        asked -= order.pop().units
    while asked + (pod := random.choice(pods)).units <= most:
        asked += pod.units
        order.append(pod)
    return order


def replay(nodes: Sequence[Inventory], order: Sequence[Request], policy: Policy) -> Iterator[Moment]:
    """Lets the pods come, a moment each. The policy learns the shapes as they come."""
    ledger, table, shapes = Ledger(), Table(), Shapes()
    for node in nodes:
        ledger.set_inventory(node)
    table.update(ledger)
    all_shapes = Shapes()
    for pod in order:
        all_shapes.see(pod)
    demand = all_shapes.demand(table)
    units = capacity_units(nodes)
    arrived = allocated = told = 0
    for number, pod in enumerate(order):
        shapes.see(pod)
        holding = choose(ledger, table, str(number), pod, policy, shapes.demand(table))
        if holding is not None:
            ledger.assume(holding)
            allocated += pod.units
        arrived += pod.units
        fragmented_percent = None
        if arrived * 100 // units > told:
            told = arrived * 100 // units
            table.update(ledger)
            fragmented_percent = 100 * fragmented_units(table, demand) / units
        yield Moment(100 * arrived / units, 100 * allocated / units, fragmented_percent)


def fragmented_units(table: Table, demand: Demand) -> float:
    """The free units that the next pod could not use, in the mean over the shapes."""
    rows = table.rows
    usable = rows.usable_units()
    return float(usable.sum() - node_worth(rows, usable, rows.idle(), demand, demand.plain).sum())


def at_percent(moments: Iterable[Moment], percents: Sequence[int] = REPORTED_PERCENT) -> dict[int, float]:
    """The allocated percent when so much has arrived: the mean of the moments whose arrivals round to that percent (as
    FGD's authors take it), or where there is none, the last before. No moment beyond the last percent is asked for."""
    near: dict[int, list[float]] = {percent: [] for percent in percents}
    before = dict.fromkeys(percents, 0.0)
    last = max(percents)
    for moment in moments:
        rounded = int(moment.arrived_percent + 0.5)
        if rounded > last:
            break
        if rounded in near:
            near[rounded].append(moment.allocated_percent)
        for percent in percents:
            if rounded < percent:
                before[percent] = moment.allocated_percent
    return {percent: fmean(near[percent]) if near[percent] else before[percent] for percent in percents}
