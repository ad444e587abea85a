"""What a policy makes of each kind of node: of hundreds of nodes few differ, and most of them do not change between one
pod and the next."""

from collections.abc import Sequence

import numpy as np

from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.placing import holding, parts_of, rank
from sharemgr.cluster.placement.policies import Policy, usable
from sharemgr.cluster.placement.singly import GPUS_MAX, Fit, Judge
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.request import Holding, Request

FITS_MAX = 20_000
"""Are kept: some 10 MiB. A cluster in use has some hundreds of kinds, and some hundreds of shapes ask."""


SINGLY_MAX = 12
"""Kinds that are judged one after the other: arrays take 0.12 ms and little more for each, one by one 0.013 each."""


class Kinds:
    """For one policy, whose score of a node depends on that node alone: nothing is known of programs
    (``Options.known``)."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._demand: Demand | None = None
        """By which the policy has judged."""
        self._judge_singly: Judge | None = None
        """None: the policy has no such form."""
        self._fits: dict[Request, dict[int, Fit | None]] = {}
        """By kind of node; None: it does not fit."""
        self._count = 0

    def best(
        self, ledger: Ledger, table: Table, uid: str, request: Request, demand: Demand, names: Sequence[str]
    ) -> tuple[Holding, float] | None:
        """What a pod of one ask, and no affinity, gets on the best of these nodes, of equals on the first, and its
        score; None where it fits none. kube-scheduler has found them to have the cores and RAM. The table is that of
        the ledger as it is now."""
        kinds = list(map(table.kind.get, names))
        # In their order.
        distinct = [kind for kind in dict.fromkeys(kinds) if kind is not None]
        fits = self._judged(demand, request)
        unknown = [table.row[names[kinds.index(kind)]] for kind in distinct if kind not in fits]
        if unknown:
            self._judge(ledger, table, request, demand, unknown, fits)
        best, kind_of_best = None, None
        for kind in distinct:
            fit = fits[kind]
            if fit is not None and (best is None or fit.score > best.score):
                best, kind_of_best = fit, kind
        if best is None:
            return None
        node = ledger.node(names[kinds.index(kind_of_best)])
        assert node is not None, "the table was updated just now"
        return holding(node, uid, request, best.parts), best.score

    def _judged(self, demand: Demand, request: Request) -> dict[int, Fit | None]:
        if demand is not self._demand or self._count > FITS_MAX:
            self._demand, self._count = demand, 0
            self._judge_singly = Judge(demand) if self._policy is usable.score else None
            self._fits.clear()
        return self._fits.setdefault(request, {})

    def _judge(
        self,
        ledger: Ledger,
        table: Table,
        request: Request,
        demand: Demand,
        rows: Sequence[int],
        fits: dict[int, Fit | None],
    ) -> None:
        self._count += len(rows)
        one_by_one = self._judge_singly
        if one_by_one is not None and len(rows) <= SINGLY_MAX and table.rows.free_units.shape[1] <= GPUS_MAX:
            for row in rows:
                fits[table.kind[table.nodes[row]]] = one_by_one.fit(table, row, request)
            return
        for row in rows:
            fits[table.kind[table.nodes[row]]] = None
        ranking = rank(ledger, table, request, self._policy, demand, np.array(rows, np.int64), passed=True)
        for place, (row, score) in enumerate(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)):
            fits[table.kind[table.nodes[row]]] = Fit(score, parts_of(ranking, place))
