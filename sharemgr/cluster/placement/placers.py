"""Where a pod goes, and which devices it gets there: decided for each kind of device by a table and the shapes of that
kind alone, and for a pod that asks for several kinds on the nodes that have room for all of them."""

from collections.abc import Iterable, Sequence

import numpy as np

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Accelerator
from sharemgr.cluster.placement.node_kinds import NodeKinds
from sharemgr.cluster.placement.placing import Ranking, choose, rank, take_best
from sharemgr.cluster.placement.policies import Policy
from sharemgr.cluster.placement.rows import Ints
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.request import Holding, Request

Found = tuple[Holding, float]
"""What a pod gets on a node, and the node's score."""


class Placer:
    """Places pods by one kind of device. Each request is of that kind alone."""

    def __init__(self, ledger: Ledger, policy: Policy, kind: Accelerator) -> None:
        self.table = Table(kind=kind)
        self.shapes = Shapes()
        self._ledger = ledger
        self._policy = policy
        self._kinds = NodeKinds(policy)

    def take_in(self, changed: Iterable[str]) -> None:
        """Takes in which nodes have changed. One that never had a device of this kind has no row."""
        rows, kind = self.table.row, self.table.accelerator
        there = self._ledger.node
        concerned = [name for name in changed if name in rows or ((node := there(name)) is not None and node.of(kind))]
        self.table.take_in(self._ledger, concerned)

    def scored(self, uid: str, request: Request, names: Sequence[str]) -> tuple[dict[str, float], Holding | None]:
        """The scores of those of these nodes that can hold the pod, and what it gets on the best."""
        ranking = self._ranked(request, self._rows(names))
        return self._scores(ranking), take_best(self._ledger, self.table, uid, request, ranking)

    def best(self, uid: str, request: Request, names: Sequence[str]) -> Found | None:
        """What the pod gets on the best of these nodes; None where it fits none."""
        if _has_one_place(request):
            return self._on_kinds(uid, request, names)
        rows = self._rows(names)
        # An affinity is to this GPU or that one, whatever is free there.
        ranking = self._ranked(request, rows if request.affinity else self.table.distinct(rows))
        best = take_best(self._ledger, self.table, uid, request, ranking)
        return None if best is None else (best, float(ranking.scores.max()))

    def on(self, uid: str, request: Request, node: str) -> Holding | None:
        """What the pod gets on that node; None where it does not fit."""
        if _has_one_place(request):
            found = self._on_kinds(uid, request, [node])
            return None if found is None else found[0]
        demand = self.shapes.demand(self.table)
        return choose(self._ledger, self.table, uid, request, self._policy, demand, on=node)

    def with_room(self, request: Request, names: Iterable[str]) -> list[str]:
        """Which of the nodes named can hold the pod, cores and RAM included."""
        rows = np.sort(self._rows(names))
        ranking = rank(self._ledger, self.table, request, self._policy, self.shapes.demand(self.table), rows)
        return [self.table.nodes[row] for row in ranking.rows.tolist()]

    def _rows(self, names: Iterable[str]) -> Ints:
        return np.array([row for row in map(self.table.row.get, names) if row is not None], np.int64)

    def _ranked(self, request: Request, rows: Ints) -> Ranking:
        demand = self.shapes.demand(self.table)
        return rank(self._ledger, self.table, request, self._policy, demand, rows, passed=True)

    def _on_kinds(self, uid: str, request: Request, names: Sequence[str]) -> Found | None:
        return self._kinds.best(self._ledger, self.table, uid, request, self.shapes.demand(self.table), names)

    def _scores(self, ranking: Ranking) -> dict[str, float]:
        nodes = map(self.table.nodes.__getitem__, ranking.rows.tolist())
        return dict(zip(nodes, ranking.scores.tolist(), strict=True))


class Placers:
    """Places pods by all kinds of device of one ledger. What has changed there is taken in before anything is asked."""

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self._ledger = ledger
        self._of = {kind: Placer(ledger, policy, kind) for kind in KINDS}

    def update(self) -> list[str]:
        """Takes in what has changed since the last time; returns the nodes that have."""
        changed = self._ledger.take_changed()
        if changed:
            for kind in self._ledger.kinds:
                self._of[kind].take_in(changed)
        return changed

    def see(self, request: Request) -> None:
        """A pod that asks for this has come; to be called once for each."""
        for part in request.parts:
            self._of[part.kind].shapes.see(part)

    def knows_exclusions(self, kind: Accelerator) -> bool:
        """Whether pods of exclusions have held devices of this kind."""
        return len(self._of[kind].table.exclusions) > 1

    def scored(self, uid: str, request: Request, names: Sequence[str]) -> tuple[dict[str, float], Holding | None]:
        """The scores of those of these nodes that can hold the pod, and what it gets on the best."""
        first, *others = request.parts
        scores, best = self._of[first.kind].scored(uid, first, names)
        if not others:
            return scores, best
        for part in others:
            more, _ = self._of[part.kind].scored(uid, part, list(scores))
            scores = {name: scores[name] + score for name, score in more.items()}
        on = max(scores, key=scores.__getitem__, default=None)
        return scores, None if on is None else self.on(uid, request, on)

    def best(self, uid: str, request: Request, names: Sequence[str]) -> Found | None:
        """What the pod gets on the best of these nodes; None where it fits none."""
        first, *others = request.parts
        if not others:
            return self._of[first.kind].best(uid, first, names)
        scores, best = self.scored(uid, request, names)
        return None if best is None else (best, scores[best.node])

    def on(self, uid: str, request: Request, node: str) -> Holding | None:
        """What the pod gets on that node; None where it does not fit."""
        first, *others = request.parts
        holding = self._of[first.kind].on(uid, first, node)
        for part in others:
            beside = self._of[part.kind].on(uid, part, node)
            if holding is None or beside is None:
                return None
            holding = holding._replace(takes=holding.takes + beside.takes)
        return holding

    def with_room(self, request: Request, names: Sequence[str]) -> str | None:
        """One of these nodes that can hold the pod, cores and RAM included; None where there is none."""
        for part in request.parts:
            names = self._of[part.kind].with_room(part, names)
        return names[0] if names else None


def _has_one_place(request: Request) -> bool:
    """Whether what it gets on a node is a matter of that node's kind. How several asks are placed depends on the other
    nodes, too, and an affinity is to this GPU or that one."""
    return len(request.asks) == 1 and not request.affinity
