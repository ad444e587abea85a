"""The choice: of all nodes and their GPUs, where a pod goes."""

from dataclasses import dataclass

import numpy as np

from sharemgr.cluster.demand import Demand
from sharemgr.cluster.ledger import Ledger
from sharemgr.cluster.options import NOTHING, Options, find_options
from sharemgr.cluster.policies import Policy
from sharemgr.cluster.request import Holding, Request, Take
from sharemgr.cluster.table import NOBODY, Bools, Floats, Ints, Rows, Table


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
    ledger: Ledger, table: Table, request: Request, policy: Policy, demand: Demand, among: Ints | None = None
) -> Ranking:
    """Scores the nodes that can hold a pod, ``among`` these rows of the table where they are given. The table is that
    of the ledger as it is now.

    The containers of a pod are placed one after the other, the largest first, each where the policy wants it: a node
    is left out where one of them finds no room that way.
    """
    rows = table.rows if among is None else table.rows.pick(among)
    asks = sorted(enumerate(request.asks), key=lambda each: each[1].units * each[1].devices, reverse=True)
    every = np.arange(len(rows.cpu_milli)) if among is None else among
    ranking = Ranking(every, np.zeros(len(every)), [])
    permitted = _permitted(ledger, table, rows, every, request)
    cpu_milli, ram_mib = request.cpu_milli, request.ram_mib
    for number, ask in asks or [(0, NOTHING)]:
        options = find_options(rows, ask, permitted, cpu_milli, ram_mib)
        scores = np.where(options.fits, policy(options, demand), -np.inf)
        column = scores.argmax(axis=1)
        ranking.rows = ranking.rows[options.index]
        ranking.scores = ranking.scores[options.index] + scores[np.arange(len(column)), column]
        ranking.steps.append(Step(number, options, column))
        cpu_milli = ram_mib = 0  # the pod's, not the container's
        if len(asks) > 1:
            rows = _placed(options, column)
            permitted = None if permitted is None else permitted[options.index]
    return ranking


def choose(
    ledger: Ledger, table: Table, uid: str, request: Request, policy: Policy, demand: Demand, on: str | None = None
) -> Holding | None:
    """The best node (of equals the one that came first), or the one that it is to be ``on``, and what the pod gets
    there; None where it does not fit."""
    table.update(ledger)
    if on is not None and on not in table.row:
        return None
    ranking = rank(ledger, table, request, policy, demand, None if on is None else np.array([table.row[on]]))
    return take_best(ledger, table, uid, request, ranking)


def take_best(ledger: Ledger, table: Table, uid: str, request: Request, ranking: Ranking) -> Holding | None:
    """What the pod gets on the best of the nodes that were ranked for it; None where there is none."""
    if not len(ranking.rows):
        return None
    best = int(ranking.scores.argmax())
    node = ledger.node(table.nodes[ranking.rows[best]])
    assert node is not None, "the table was updated just now"
    takes: dict[int, list[Take]] = {}
    for step in reversed(ranking.steps):
        here = slice(best, best + 1)
        gpus = np.flatnonzero(step.options.taken(here, step.column[here])[0])
        need_mib = step.options.need_mib[best]
        takes[step.number] = [
            Take(node.inventory.gpus[gpu].id, step.options.ask.units, int(need_mib[gpu])) for gpu in gpus
        ]
        best = int(step.options.index[best])
    in_order = tuple(take for number in sorted(takes) for take in takes[number])
    return Holding(
        uid,
        node.inventory.node,
        in_order,
        request.cpu_milli,
        request.ram_mib,
        request.affinity,
        request.exclusion,
    )


def _permitted(ledger: Ledger, table: Table, rows: Rows, index: Ints, request: Request) -> Bools | None:
    """node × GPU: which GPUs the pod may have by their model and by who is there already; None: any. ``index`` says
    where these rows stand in the table."""
    masks = []
    if request.models:
        masks.append(np.array([model.name in request.models for model in table.models])[rows.model])
    if request.exclusion or len(table.exclusions) > 1:
        own = table.exclusions.get(request.exclusion, NOBODY)
        masks.append((rows.exclusion == NOBODY) | (rows.exclusion == own))
    if request.affinity and (gpus := ledger.together(request.affinity)):
        together = np.zeros_like(rows.model, np.bool_)
        for name, gpu_id in gpus:
            node = ledger.node(name)
            places = [place for place, gpu in enumerate(node.inventory.gpus) if gpu.id == gpu_id] if node else []
            if name in table.row:
                together[np.ix_(index == table.row[name], places)] = True
        masks.append(together)
    return np.logical_and.reduce(masks) if masks else None


def _placed(options: Options, column: Ints) -> Rows:
    """The rows once the ask has its place in each."""
    rows = options.rows
    taken = options.taken(slice(None), column)
    return Rows(
        rows.free_units - taken * options.ask.units,
        rows.free_mib - taken * options.need_mib,
        rows.total_mib,
        rows.model,
        rows.exclusion,
        options.cpu_after_milli,
        options.ram_after_mib,
        rows.kind,
    )
