"""Room that is kept between a filter that answers with one node and the bind that follows it: without that, the filter
of the next pod, which kube-scheduler asks before that bind, takes the same room, and the bind finds it gone.

A promise takes room in the ledger, and is nobody's holding. It ends when its pod is bound or filtered anew, and when it
lapses. It gives way to facts.
"""

from dataclasses import dataclass

from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.request import Holding


@dataclass(slots=True)
class _Promise:
    holding: Holding
    is_recent: bool = True
    """It was made since ``lapse`` was last called."""


class Promises:
    """The promises of one ledger, one a pod."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: dict[str, _Promise] = {}
        """By uid."""
        self._on: dict[str, set[str]] = {}
        """Their uids, by node."""

    def make(self, holding: Holding) -> None:
        """Keeps for a pod what it was just found to have room for."""
        self.end(holding.uid)
        self._kept[holding.uid] = _Promise(holding)
        self._on.setdefault(holding.node, set()).add(holding.uid)
        self._ledger.set_aside(holding)

    def end(self, uid: str) -> None:
        """Nothing is kept for the pod any more: what it asks for next can have that room, or its bind."""
        promise = self._kept.pop(uid, None)
        if promise is not None:
            on_node = self._on[promise.holding.node]
            on_node.discard(uid)
            if not on_node:
                del self._on[promise.holding.node]
            self._ledger.give_back(promise.holding)

    def give_way(self, name: str | None = None) -> None:
        """Facts have come, of that node or of all: what was promised of one ends where a device has less than is
        held and promised."""
        for place in list(self._on) if name is None else [name]:
            for uid in list(self._on.get(place, ())):
                node = self._ledger.node(place)
                if node is None or any(min(node.free(each)) < 0 for each in node.inventory.devices):
                    self.end(uid)

    def lapse(self) -> None:
        """Ends what was promised before this was last called: its bind would have been asked for by now. Nobody tells
        of a pod that was deleted before it was bound, or that kube-scheduler did not bind after all."""
        for uid, promise in list(self._kept.items()):
            if promise.is_recent:
                promise.is_recent = False
            else:
                self.end(uid)
