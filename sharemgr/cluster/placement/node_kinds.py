"""What a policy makes of each kind of node: of hundreds of nodes few differ, and most of them do not change between one
pod and the next."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.few_nodes import GPUS_MAX, Fit, Judge, Sums
from sharemgr.cluster.placement.placing import holding, places_of, rank
from sharemgr.cluster.placement.policies import Policy, usable
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.request import Holding, Request

FITS_MAX = 20_000
"""Are kept: some 10 MiB. A cluster in use has some hundreds of kinds, and some hundreds of shapes ask."""

SINGLY_MAX = 24
"""Kinds that are judged one after the other: arrays take 0.1 ms and little more for each, one by one 0.004 each."""

NAMES_A_KIND = 8
"""Where there are so many names for each kind of the table, it is faster to look for the nodes of each kind among the
names than for the kind of each name."""


class _Asked(NamedTuple):
    """What was judged for a request."""

    judge: Judge | None
    """None: the policy has no such form."""
    fits: dict[int, Fit | None]
    """By kind of node; None: it does not fit."""


class NodeKinds:
    """What one policy makes of each kind of node: its score depends on the node alone, as nothing is known of programs
    (``Options.known``)."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._demand: Demand | None = None
        """By which the policy has judged."""
        self._width = 0
        """The table's then."""
        self._sums: Sums | None = None
        self._asked: dict[Request, _Asked] = {}
        self._count = 0

    def best(
        self, ledger: Ledger, table: Table, uid: str, request: Request, demand: Demand, names: Sequence[str]
    ) -> tuple[Holding, float] | None:
        """What a pod of one ask, and no affinity, gets on the best of these nodes, of equals on the first, and its
        score; None where it fits none. kube-scheduler has found them to have the cores and RAM. The table is that of
        the ledger as it is now."""
        asked = self._by(demand, table, request)
        kinds = _kinds_of(table, names)
        unknown = [kind for kind in kinds if kind not in asked.fits]
        if unknown:
            self._judge(ledger, table, request, demand, unknown, asked)
        scores = {kind: fit.score for kind in kinds if (fit := asked.fits[kind]) is not None}
        if not scores:
            return None
        most = max(scores.values())
        best = [kind for kind, score in scores.items() if score == most]
        nodes = table.of_kind[best[0]] if len(best) == 1 else set().union(*(table.of_kind[kind] for kind in best))
        name = next(filter(nodes.__contains__, names))
        node, fit = ledger.node(name), asked.fits[table.kind[name]]
        assert node is not None, "the table was updated just now"
        assert fit is not None, "its kind has a score"
        return holding(node, uid, request, [fit.places]), most

    def _by(self, demand: Demand, table: Table, request: Request) -> _Asked:
        """What that demand makes of the request, as far as it was asked."""
        if demand is not self._demand or table.width != self._width or self._count > FITS_MAX:
            self._demand, self._width, self._count = demand, table.width, 0
            few = self._policy is usable.score and table.width <= GPUS_MAX
            self._sums = Sums(demand, table.width) if few else None
            self._asked.clear()
        asked = self._asked.get(request)
        if asked is None:
            judge = None if self._sums is None else Judge(self._sums, table, request)
            asked = self._asked[request] = _Asked(judge, {})
        return asked

    def _judge(
        self,
        ledger: Ledger,
        table: Table,
        request: Request,
        demand: Demand,
        kinds: Sequence[int],
        asked: _Asked,
    ) -> None:
        self._count += len(kinds)
        nodes = [next(iter(table.of_kind[kind])) for kind in kinds]
        fits = asked.fits
        if asked.judge is not None and len(kinds) <= SINGLY_MAX:
            for kind, node in zip(kinds, nodes, strict=True):
                fits[kind] = asked.judge.fit(kind, table.plain(node))
            return
        fits.update(dict.fromkeys(kinds))
        rows = np.array([table.row[node] for node in nodes], np.int64)
        ranking = rank(ledger, table, request, self._policy, demand, rows, passed=True)
        for place, (row, score) in enumerate(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)):
            fits[table.kind[table.nodes[row]]] = Fit(score, places_of(ranking, place)[0])


def _kinds_of(table: Table, names: Sequence[str]) -> Collection[int]:
    """The kinds of these nodes."""
    if len(table.of_kind) * NAMES_A_KIND > len(names):
        return {kind for kind in map(table.kind.get, names) if kind is not None}
    there = set(names)
    return [kind for kind, nodes in table.of_kind.items() if not nodes.isdisjoint(there)]
