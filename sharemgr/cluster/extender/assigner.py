"""What the assigner decides, from all that it knows: which nodes can hold a pod, which is best, which devices it gets.
No IO: the API server's news come in, decisions go out."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.errors import InvalidRequest, NoRoom, NotFound
from sharemgr.cluster.placement.placers import Placers
from sharemgr.cluster.placement.policies import Policy
from sharemgr.cluster.placement.reasons import no_devices, state, state_for, unmangled, wish
from sharemgr.cluster.state.books import AcceleratorNode, Books
from sharemgr.cluster.state.cores import Offer
from sharemgr.cluster.state.holdings import assigned_to
from sharemgr.cluster.state.pods import SharePod
from sharemgr.cluster.state.promises import Promises
from sharemgr.cluster.state.request import Holding

ASKING_MAX = 10_000
"""Pods that are remembered between their filtering and their binding; one that was forgotten is read again."""

SCORE_MAX = 10
"""What kube-scheduler takes of an extender (MaxExtenderPriority, k8s.io/kube-scheduler/extender/v1)."""

TOLD_IN_FULL = 100
"""Nodes; of more the message, which kube-scheduler cuts at 1,024 characters, would only take time."""


@dataclass(slots=True)
class Asking:
    """A pod that kube-scheduler is looking for a node for."""

    pod: SharePod
    scores: dict[str, float] = field(default_factory=dict)
    """Of the nodes that can hold it, as of its last filtering, or of the best where filter answers with that alone;
    none: it was turned down."""
    best: Holding | None = None
    """What it gets on the best of them, if nothing changes there."""
    since: int = 0
    """When that node had last changed then (ledger.changed_at)."""
    is_recent: bool = True
    """It was filtered since ``forget_idle`` was last called."""


class Filtered(NamedTuple):
    """Which nodes can hold a pod, and why the others cannot."""

    nodes: list[str]
    failed: dict[str, str]
    """Node → why it cannot now; it may when something is released."""
    never: dict[str, str]
    """Node → why it never can, whatever is released."""


class Assigner:
    """One leader's mind. ``keeps_choice``: filter answers with the best node alone."""

    def __init__(self, policy: Policy, keeps_choice: bool = False) -> None:
        self.books = Books()
        self.promises = Promises(self.books.ledger)
        self._keeps_choice = keeps_choice
        self._placers = Placers(self.books.ledger, policy)
        self._asking: OrderedDict[str, Asking] = OrderedDict()
        self._states: dict[str, dict[str, str]] = {}
        """By node and kind of device: what is free there, in words."""
        self._changed: set[str] = set()
        """Nodes, since ``fits_now`` was last asked."""

    def pods_listed(self, pods: Collection[SharePod]) -> None:
        """Takes in a list of all bound pods. Also those that were assigned by others say what shapes come."""
        for pod in pods:
            if pod.request.asks and self.books.pod(pod.uid) is None and pod.uid not in self._asking:
                self._placers.see(pod.request)
            self.forget(pod.uid)
        self.books.pods_listed(pods)
        self.promises.give_way()

    def pod_told(self, kind: str, pod: SharePod) -> None:
        """A bound pod came, changed or went."""
        if kind != "DELETED" and self.books.is_known(pod):
            return
        self.forget(pod.uid)
        if kind == "DELETED":
            self.books.pod_gone(pod.uid)
        else:
            self.books.pod_seen(pod)
            self.promises.give_way(pod.node)

    def nodes_listed(self, nodes: Collection[AcceleratorNode]) -> None:
        """Takes in a list of all AcceleratorNodes."""
        self.books.nodes_listed(nodes)

    def node_told(self, kind: str, node: AcceleratorNode) -> None:
        """An AcceleratorNode came, changed or went."""
        if kind == "DELETED":
            self.books.node_gone(node.name)
        else:
            self.books.node_told(node)

    def offers_listed(self, offers: Collection[Offer]) -> None:
        """Takes in a list of all Nodes' cores and RAM."""
        self.books.offers_listed(offers)

    def offer_told(self, kind: str, offer: Offer) -> None:
        """A Node came, changed or went."""
        self.books.offered(Offer(offer.node, None) if kind == "DELETED" else offer)

    def asking(self, uid: str) -> SharePod | None:
        """The pod as it was when it was last filtered, if it is remembered."""
        asking = self._asking.get(uid)
        return asking.pod if asking is not None else None

    def forget(self, uid: str) -> None:
        """The pod asks no longer."""
        self._asking.pop(uid, None)
        self.promises.end(uid)

    def forget_idle(self) -> None:
        """Pods that were not filtered since the last call ask no longer: nobody tells of a pod that was deleted
        before it was bound."""
        for uid, asking in list(self._asking.items()):
            if not asking.is_recent:
                del self._asking[uid]
            asking.is_recent = False

    def filter(self, pod: SharePod, names: Sequence[str]) -> Filtered:
        """Which of these nodes have devices with room for the pod. Where the best alone is, that is promised to it."""
        self.promises.end(pod.uid)
        if pod.fault:
            return Filtered([], {}, dict.fromkeys(names, unmangled(pod.fault)))
        if not pod.asks:
            return Filtered(list(names), {}, {})
        held = self.books.ledger.bound(pod.uid)
        if held is not None:
            # Its Binding is in doubt, or was written by now: it can go nowhere else.
            why = f"pod {pod} is being bound to node {held.node}"
            return Filtered([held.node] if held.node in names else [], {n: why for n in names if n != held.node}, {})
        asking = self._remember(pod)
        self._refresh()
        if self._keeps_choice:
            found = self._placers.best(pod.uid, pod.request, names)
            asking.best, asking.scores = (found[0], {found[0].node: found[1]}) if found is not None else (None, {})
        else:
            asking.scores, asking.best = self._placers.scored(pod.uid, pod.request, names)
        best = asking.best
        if best is not None:
            if self._keeps_choice:
                self.promises.make(best)
            asking.since = self.books.ledger.changed_at(best.node)
            if self._keeps_choice:
                # kube-scheduler says why nodes are left out only where none is left.
                return Filtered([best.node], {}, {})
        fitting = [name for name in names if name in asking.scores]
        return Filtered(fitting, self._failed(pod, [name for name in names if name not in asking.scores]), {})

    def prioritize(self, pod: SharePod, names: Sequence[str]) -> dict[str, int]:
        """A score of 0 to 10 for each of these nodes, by rank: 10 for the best alone, 9 for the next two, 8 for the
        next four, and so on. (Were the policy's own scores quantised, many would be the best.)"""
        if not pod.asks:
            return dict.fromkeys(names, 0)
        asking = self._asking.get(pod.uid)
        if asking is not None:
            scores = asking.scores
        else:
            self._refresh()
            scores, _ = self._placers.scored(pod.uid, pod.request, names)
        ordered = sorted((name for name in names if name in scores), key=lambda name: -scores[name])
        found = dict.fromkeys(names, 0)
        for place, name in enumerate(ordered):
            found[name] = max(0, SCORE_MAX + 1 - (place + 1).bit_length())
        return found

    def decide(self, pod: SharePod, node: str) -> tuple[SharePod, Holding]:
        """The pod with the devices that it gets on that node written at it, and what it holds then; both are proposals.
        Raises NoRoom with the reason, NotFound where the node has no such devices, InvalidRequest for a fault."""
        if pod.fault:
            raise InvalidRequest(f"pod {pod}: {pod.fault}")
        there = self.books.ledger.node(node)
        lacking = [part.kind for part in pod.request.parts if there is None or not there.of(part.kind)]
        if lacking:
            raise NotFound(f"node {node}: {unmangled(self.books.faults.get(node, no_devices(*lacking)))}")
        chosen = self._found(pod, node)
        if chosen is None:
            # What filter found there is not what is there now.
            self.promises.end(pod.uid)
            self._refresh()
            chosen = self._placers.on(pod.uid, pod.request, node)
        if chosen is None:
            raise NoRoom(f"node {node}: {self._why(pod, node)}")
        placed = pod._replace(node=node, assignment=assigned_to(pod, chosen))
        return placed, self.books.holding(placed, chosen)

    def waits(self) -> list[SharePod]:
        """The pods that were turned down when they were last filtered."""
        return [asking.pod for asking in self._asking.values() if not asking.scores]

    def fits_now(self) -> str | None:
        """A node that has changed since this was last asked, and could now hold a pod that was turned down; None where
        there is none."""
        self._refresh()
        changed, self._changed = self._changed, set()
        waiting = self.waits()
        if not waiting or not changed:
            return None
        # A backlog is of thousands that ask for the same.
        for request in {pod.request: None for pod in waiting}:
            found = self._placers.with_room(request, list(changed))
            if found is not None:
                return found
        return None

    def _remember(self, pod: SharePod) -> Asking:
        asking = self._asking.get(pod.uid)
        if asking is None:
            self._placers.see(pod.request)
            asking = self._asking[pod.uid] = Asking(pod)
            if len(self._asking) > ASKING_MAX:
                self._asking.popitem(last=False)
        self._asking.move_to_end(pod.uid)
        asking.pod, asking.is_recent = pod, True
        return asking

    def _found(self, pod: SharePod, node: str) -> Holding | None:
        """What its filter found there, where nothing has changed since."""
        asking = self._asking.get(pod.uid)
        # Who is together with whom is decided on other nodes, too.
        if asking is not None and asking.best is not None and asking.pod.request == pod.request:
            unchanged = self.books.ledger.changed_at(node) == asking.since
            if asking.best.node == node and unchanged and not pod.request.affinity:
                return asking.best
        return None

    def _failed(self, pod: SharePod, names: Sequence[str]) -> dict[str, str]:
        failed = {name: self._why(pod, name) for name in names[:TOLD_IN_FULL]}
        words = " or no ".join(KINDS[part.kind].word for part in pod.request.parts)
        return failed | dict.fromkeys(names[TOLD_IN_FULL:], f"{wish(pod.request)}: no {words} has as much free")

    def _why(self, pod: SharePod, name: str) -> str:
        node = self.books.ledger.node(name)
        if name in self.books.faults:
            return unmangled(self.books.faults[name])
        if node is None:
            return no_devices(*(part.kind for part in pod.request.parts))
        told = []
        for request in pod.request.parts:
            kind = request.kind
            if request.models or request.affinity or request.exclusion or self._placers.knows_exclusions(kind):
                told.append(state_for(self.books.ledger, node, request))
            else:
                states = self._states.setdefault(name, {})
                told.append(states.get(kind) or states.setdefault(kind, state(node, kind)))
        return f"{wish(pod.request)}: {', '.join(told)}"

    def _refresh(self) -> None:
        for name in self._placers.update():
            self._states.pop(name, None)
            self._changed.add(name)
