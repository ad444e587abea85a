"""The choice: of all nodes and their devices of one kind, where a pod goes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.neighbours import Habits, Known
from sharemgr.cluster.placement.options import NOTHING, Options, find_options
from sharemgr.cluster.placement.policies import Policy
from sharemgr.cluster.placement.rows import Bools, Floats, Ints, Rows, sum_of_gpus
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.eligibility import NOBODY, is_exclusion, is_model
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Node
from sharemgr.cluster.state.request import Ask, Holding, Request, Take


@dataclass(slots=True)
class Step:
    """Where one of a pod's asks was placed."""

    number: int
    """Which of its asks."""
    options: Options
    column: Ints
    """The best place in each row."""


@dataclass(slots=True)
class Ranking:
    """What a policy makes of the nodes that can hold a pod."""

    rows: Ints
    """Of the table."""
    scores: Floats
    """Of these rows; higher is better."""
    steps: list[Step]
    """Those of each step are some of the rows of the step before."""


def rank(
    ledger: Ledger,
    table: Table,
    request: Request,
    policy: Policy,
    demand: Demand,
    among: Ints | None = None,
    passed: bool = False,
) -> Ranking:
    """Scores the nodes that can hold a pod, whose asks are all of the table's kind of device, ``among`` these rows of
    the table where they are given. The table is that of the ledger as it is now. Those that ``passed`` kube-scheduler
    have the cores and RAM, whatever the table says.

    The containers of a pod are placed one after the other, the largest first, each where the policy wants it. Where
    one of them finds no room that way on any node, they are packed: each where it leaves the least, or, in some orders,
    on the first GPU with room (as preemption.py does).
    """
    rows = table.rows if among is None else table.rows.pick(among)
    index = np.arange(len(rows.cpu_milli)) if among is None else among
    if passed:
        rows = replace(
            rows,
            cpu_milli=np.maximum(rows.cpu_milli, request.cpu_milli),
            ram_mib=np.maximum(rows.ram_mib, request.ram_mib),
        )
    largest_first = next(request.orders())
    ranking = _in_order(ledger, table, rows, index, request, largest_first, policy, demand)
    if len(request.asks) > 1 and not len(ranking.rows):
        roomy = _roomy(ledger, table, rows, index, request)
        rows, index = rows.pick(roomy), index[roomy]
        for order, packing in chain([(largest_first, _tightest)], ((order, _first) for order in request.orders())):
            if not len(index) or len(ranking.rows):
                break
            ranking = _in_order(ledger, table, rows, index, request, order, packing, demand)
    return ranking


def _roomy(ledger: Ledger, table: Table, rows: Rows, index: Ints, request: Request) -> Ints:
    """Which of the rows have room for all asks in sum, and for each alone."""
    roomy = sum_of_gpus(rows.free_units) >= request.units
    permitted = _permitted(ledger, table, rows, index, request)
    for ask in dict.fromkeys(request.asks):
        alone = np.zeros_like(roomy)
        alone[find_options(rows, ask, permitted, request.cpu_milli, request.ram_mib).index] = True
        roomy &= alone
    return np.flatnonzero(roomy)


def _tightest(options: Options, demand: Demand) -> Floats:
    """Policy: whichever GPU of a node has the least left."""
    return -options.rows.free_units.astype(np.float64)


def _first(options: Options, demand: Demand) -> Floats:
    """Policy: whichever GPU of a node comes first."""
    return np.broadcast_to(-np.arange(options.fits.shape[1], dtype=np.float64), options.fits.shape)


def _in_order(
    ledger: Ledger,
    table: Table,
    rows: Rows,
    index: Ints,
    request: Request,
    order: Sequence[int],
    policy: Policy,
    demand: Demand,
) -> Ranking:
    """Scores those of the rows, which stand in the table where ``index`` says, in which the asks have room if they are
    placed in that order."""
    ranking = Ranking(index, np.zeros(len(index)), [])
    permitted = _permitted(ledger, table, rows, index, request)
    cpu_milli, ram_mib = request.cpu_milli, request.ram_mib
    for number in order or (0,):
        ask = request.asks[number] if order else NOTHING
        options = find_options(rows, ask, permitted, cpu_milli, ram_mib)
        ranking.rows = ranking.rows[options.index]
        options.known = _known(table, ranking.rows, request, ask)
        scores = np.where(options.fits, policy(options, demand), -np.inf)
        column = scores.argmax(axis=1)
        ranking.scores = ranking.scores[options.index] + scores[np.arange(len(column)), column]
        ranking.steps.append(Step(number, options, column))
        cpu_milli = ram_mib = 0  # the pod's, not the container's
        if len(order) > 1:
            rows = _placed(options, column)
            permitted = None if permitted is None else permitted[options.index]
    return ranking


def _known(table: Table, rows: Ints, request: Request, ask: Ask) -> Known | None:
    """What profiles tell of an ask, and of who is on these rows of the table."""
    if table.profiles is None or table.neighbours is None:
        return None
    program = request.program
    found = [table.profiles.on(model.name).get(program.key) for model in table.models]
    habits = [Habits(ask.units, 0, 0) if profile is None else Habits.of(profile) for profile in found]
    return Known(
        program.latency,
        np.array([each.demand_units for each in habits], np.float64),
        np.array([each.kernel_us for each in habits], np.float64),
        np.array([each.longest_kernel_us for each in habits], np.float64),
        table.neighbours.pick(rows),
    )


def choose(
    ledger: Ledger, table: Table, uid: str, request: Request, policy: Policy, demand: Demand, on: str | None = None
) -> Holding | None:
    """The best node (of equals the one that came first), or the one that it is to be ``on``, as kube-scheduler said,
    and what the pod gets there; None where it does not fit."""
    table.update(ledger)
    if on is None:
        ranking = rank(ledger, table, request, policy, demand)
    elif on in table.row:
        ranking = rank(ledger, table, request, policy, demand, np.array([table.row[on]]), passed=True)
    else:
        return None
    return take_best(ledger, table, uid, request, ranking)


def take_best(ledger: Ledger, table: Table, uid: str, request: Request, ranking: Ranking) -> Holding | None:
    """What the pod gets on the best of the nodes that were ranked for it; None where there is none."""
    if not len(ranking.rows):
        return None
    best = int(ranking.scores.argmax())
    node = ledger.node(table.nodes[ranking.rows[best]])
    assert node is not None, "the table was updated just now"
    return holding(node, uid, request, places_of(ranking, best))


def places_of(ranking: Ranking, best: int) -> list[list[int]]:
    """The devices that the asks, one after the other, take on one of the nodes that were ranked, as their places among
    those of their kind and node."""
    places: dict[int, list[int]] = {}
    for step in reversed(ranking.steps):
        ask = step.options.ask
        gpus = step.options.each[best].nonzero()[0].tolist() if ask.is_whole else [int(step.column[best])]
        places[step.number] = gpus[: ask.devices]
        best = int(step.options.index[best])
    return [places[number] for number in sorted(places)]


def holding(node: Node, uid: str, request: Request, places: Sequence[Sequence[int]]) -> Holding:
    """What a pod has whose asks, one after the other, take these devices of a node."""
    devices = node.of(request.kind) if request.asks else ()
    return Holding(
        uid,
        node.inventory.node,
        tuple(
            Take(devices[place].id, ask.units, ask.needed_mib(devices[place].memory_mib), ask.kind)
            for ask, its in zip(request.asks, places, strict=False)
            for place in its
        ),
        request.cpu_milli,
        request.ram_mib,
        request.affinity,
        request.exclusion,
        request.program,
    )


def _permitted(ledger: Ledger, table: Table, rows: Rows, index: Ints, request: Request) -> Bools | None:
    """node × GPU: which GPUs the pod may have by their model and by who is there already (``eligibility``); None: any.
    ``index`` says where these rows stand in the table."""
    masks = []
    if request.models:
        masks.append(np.array([is_model(request.models, model.name) for model in table.models])[rows.model])
    if request.exclusion or len(table.exclusions) > 1:
        masks.append(is_exclusion(table.exclusions.get(request.exclusion, NOBODY), rows.exclusion))
    if request.affinity and (gpus := ledger.together(request.affinity)):
        together = np.zeros_like(rows.model, np.bool_)
        for name, device_id in gpus:
            node = ledger.node(name)
            places = (
                [place for place, each in enumerate(node.of(table.accelerator)) if each.id == device_id] if node else []
            )
            if name in table.row:
                together[np.ix_(index == table.row[name], places)] = True
        masks.append(together)
    return np.logical_and.reduce(masks) if masks else None


def _placed(options: Options, column: Ints) -> Rows:
    """The rows once the ask has its place in each."""
    rows = options.rows
    taken = options.taken(column)
    return Rows(
        rows.free_units - taken * options.ask.units,
        rows.free_mib - taken * options.need_mib,
        rows.total_mib,
        rows.model,
        rows.exclusion,
        options.cpu_after_milli,
        options.ram_after_mib,
    )
