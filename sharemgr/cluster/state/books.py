"""What the API server tells, taken into the ledger: which pod is bound where with which devices, what each node has and
lists. Nothing of it is believed further than it reaches; what contradicts itself is flagged."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.errors import InvalidRequest, NotFound
from sharemgr.cluster.state.cores import Cores, Left, Offer
from sharemgr.cluster.state.holdings import Held
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod
from sharemgr.cluster.state.request import Holding, Request, Take

NAMELESS = "allocation "
"""What the holding of an allocation without a pod begins with in place of its uid."""


class Listed(NamedTuple):
    """An allocation, as its node lists it."""

    id: str
    pod_uid: str
    """Empty where the node does not know it yet."""
    takes: tuple[Take, ...]


@dataclass(frozen=True, slots=True)
class AcceleratorNode:
    """A node's devices and their allocations."""

    inventory: Inventory
    allocations: tuple[Listed, ...] = ()
    fault: str = ""
    """Why it could not be read; then it has no devices."""
    kept: Mapping[str, Holding] = field(default_factory=dict)
    """By pod: what it lists as the ledger has it, beside the allocations."""

    @property
    def name(self) -> str:
        """The node's."""
        return self.inventory.node


class Books:
    """The ledger, and what is known of those that it is about."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._pods: dict[str, SharePod] = {}
        """Those that are bound, by uid."""
        self._unseen: set[str] = set()
        """Of these, those that a read told of and the watch did not yet."""
        self._pods_on: dict[str, set[str]] = {}
        """Their uids, by node."""
        self._over: dict[str, Request] = {}
        """Of those that are over and still there and have labels, by uid: their nodes may list them."""
        self.flagged: dict[str, str] = {}
        """By uid: what is wrong with what a pod says that it has. It holds what its node lists for it, or what it says
        where it is only that its node has that device no more."""
        self.faults: dict[str, str] = {}
        """By node: why its AcceleratorNode cannot be read."""
        self._left = Left()
        self._held = Held()

    @property
    def pods(self) -> int:
        """How many are bound."""
        return len(self._pods)

    def pod(self, uid: str) -> SharePod | None:
        """The pod, if it was seen to be bound."""
        return self._pods.get(uid)

    def pods_on(self, node: str) -> list[SharePod]:
        """The pods that were seen to be bound to a node."""
        return [self._pods[uid] for uid in self._pods_on.get(node, ())]

    def pods_listed(self, pods: Iterable[SharePod]) -> None:
        """Takes in a list of all bound pods. One whose Binding is only assumed, or was only read, may be too new to be
        among them."""
        bound = {pod.uid: pod for pod in pods}
        for uid in (self._pods.keys() | self._over.keys() | self._left.others) - bound.keys() - self._unseen:
            self.pod_gone(uid)
        for pod in bound.values():
            self.pod_seen(pod)

    def pod_seen(self, pod: SharePod) -> None:
        """The watch tells that a pod is, or was changed to, what it says."""
        self._unseen.discard(pod.uid)
        self._take_in(pod)

    def pod_read(self, pod: SharePod) -> None:
        """A read told of a pod that is bound. It may be ahead of the watch, or behind: the pod may be gone by now, and
        the watch have told of that. So it has to be read again, until it is gone or the watch tells of it."""
        if pod.uid not in self._pods or pod.uid in self._unseen:
            self._take_in(pod)
            if pod.uid in self._pods:
                self._unseen.add(pod.uid)

    def is_unseen(self, uid: str) -> bool:
        """Whether the watch did not tell yet of a pod that is assumed, or was read, to be bound."""
        return self.ledger.is_assumed(uid) or uid in self._unseen

    def is_known(self, pod: SharePod) -> bool:
        """Whether the watch has told of just that pod before: nothing is new then."""
        return self._pods.get(pod.uid) is pod and not self.is_unseen(pod.uid)

    def _take_in(self, pod: SharePod) -> None:
        if not (pod.asks or pod.assignment is not None or pod.is_over) and pod.node:
            cores = Cores(pod.request.cpu_milli, pod.request.ram_mib)
            if self._left.taken(pod.uid, pod.node, cores):
                self._share_out(pod.node)
            return
        if pod.is_over or not pod.node:
            self.pod_gone(pod.uid)
            if pod.node and (pod.request.affinity or pod.request.exclusion):
                self._over[pod.uid] = pod.request
                # It holds nothing, and what is listed for it takes over its labels.
                self.ledger.see(Holding(pod.uid, pod.node, ()).labelled(pod.request))
                self.ledger.release(pod.uid)
            return
        before = self._pods.get(pod.uid)
        if before is not None:
            # It has what it said when it was bound; later edits change nothing.
            assignment = pod.assignment if before.assignment is None else before.assignment
            # A Binding that is assumed for one that is bound is to nowhere else.
            if assignment == before.assignment and not self.ledger.is_assumed(pod.uid):
                return
            pod = before._replace(assignment=assignment)
        self._pods[pod.uid] = pod
        self._pods_on.setdefault(pod.node, set()).add(pod.uid)
        self._hold(pod)

    def pod_gone(self, uid: str) -> None:
        """A pod is over, or there is none of that uid any more."""
        pod = self._pods.pop(uid, None)
        self._over.pop(uid, None)
        self._unseen.discard(uid)
        self.flagged.pop(uid, None)
        if pod is not None:
            on_node = self._pods_on[pod.node]
            on_node.discard(uid)
            if not on_node:
                del self._pods_on[pod.node]
        self.ledger.release(uid)
        beside = self._left.given_back(uid)
        if beside is not None:
            self._share_out(beside)

    def going(self, node: str) -> list[Holding]:
        """What the node lists of pods that are not bound any more. (Of whom it has no pod it may know later.)"""
        there = self.ledger.node(node)
        listed = there.listed.items() if there is not None else ()
        return [held for uid, held in listed if self.ledger.bound(uid) is None and not uid.startswith(NAMELESS)]

    def overcommitted(self) -> list[str]:
        """What is to be said of the devices of which pods hold more than there is."""
        said = []
        for node, device in self.ledger.overcommitted():
            bound = [(pod, self.ledger.bound(pod.uid)) for pod in self.pods_on(node)]
            on_it = [str(pod) for pod, held in bound if held and device.id in {take.device_id for take in held.takes}]
            who = f"pods {', '.join(sorted(on_it))}" if on_it else "pods that are gone"
            said.append(f"node {node}: {who} hold more of {KINDS[device.kind].word} {device.id} than there is of it")
        return said

    def nodes_listed(self, nodes: Iterable[AcceleratorNode]) -> None:
        """Takes in a list of all AcceleratorNodes."""
        told = {node.name: node for node in nodes}
        for name in {*self.faults, *(node.inventory.node for node in self.ledger)} - told.keys():
            self.node_gone(name)
        for node in told.values():
            self.node_told(node)

    def node_told(self, told: AcceleratorNode) -> None:
        """A node tells what it has and lists."""
        name = told.name
        self.faults.pop(name, None)
        if told.fault:
            self.faults[name] = told.fault
        node = self.ledger.node(name)
        is_new = node is None or node.inventory.devices != told.inventory.devices
        listed = node.listed if node is not None else {}
        self.ledger.set_inventory(self._with_cores(told.inventory))
        takes: dict[str, list[Take]] = {}
        for each in told.allocations:
            # Whose it is may be known a moment later.
            takes.setdefault(each.pod_uid or f"{NAMELESS}{each.id}", []).extend(each.takes)
        holdings = {**told.kept}
        for uid, its in takes.items():
            before, now = listed.get(uid), tuple(its)
            holdings[uid] = before if before is not None and before.takes == now else Holding(uid, name, now)
        for uid in holdings.keys() & self._over.keys():
            holdings[uid] = holdings[uid].labelled(self._over[uid])
        self.ledger.list_holdings(name, holdings.values())
        for uid in self._pods_on.get(name, ()):
            # Most of what is told is about one pod of many.
            if is_new or holdings.get(uid) is not listed.get(uid):
                self._hold(self._pods[uid])

    def node_gone(self, name: str) -> None:
        """A node has no AcceleratorNode any more."""
        self.faults.pop(name, None)
        self.ledger.drop_node(name)

    def offers_listed(self, offers: Collection[Offer]) -> None:
        """Takes in a list of all nodes' cores and RAM."""
        for name in self._left.nodes - {offer.node for offer in offers}:
            self.offered(Offer(name, None))
        for offer in offers:
            self.offered(offer)

    def offered(self, offer: Offer) -> None:
        """A node tells what cores and RAM it has, or tells no more."""
        if self._left.offered(offer):
            self._share_out(offer.node)

    def _share_out(self, name: str) -> None:
        """What pods with devices may have of a node's cores and RAM has changed."""
        node = self.ledger.node(name)
        if node is not None:
            self.ledger.set_inventory(self._with_cores(node.inventory))

    def _with_cores(self, inventory: Inventory) -> Inventory:
        left = self._left.on(inventory.node)
        if left is None or not inventory.devices:
            return Inventory(inventory.node, inventory.devices)
        return Inventory(inventory.node, inventory.devices, left.cpu_milli, left.ram_mib)

    def holding(self, pod: SharePod, chosen: Holding | None = None) -> Holding:
        """What a pod has by its assignment, which may have been written of what was ``chosen``. Raises InvalidRequest
        where that says what cannot be."""
        return self._held.of(pod, self._devices(pod.node), chosen)

    def _hold(self, pod: SharePod) -> None:
        try:
            if pod.fault:
                raise InvalidRequest(pod.fault)
            holding = self.holding(pod)
            self._check(pod, holding)
        except (InvalidRequest, NotFound) as error:
            self.flagged[pod.uid] = f"{pod}: {error}"
            listed = self._listed(pod)
            if listed is None:
                self.ledger.release(pod.uid)
            else:
                # Its labels count even so: a node knows nothing of them.
                self.ledger.see(listed.labelled(pod.request))
        else:
            self.flagged.pop(pod.uid, None)
            named = {take.kind for take in holding.takes}
            unnamed = [KINDS[part.kind].word for part in pod.request.parts if part.kind not in named]
            missing = self._missing(holding)
            if unnamed:
                self.flagged[pod.uid] = f"{pod}: its assignment names no {' and no '.join(unnamed)}"
            elif missing:
                self.flagged[pod.uid] = f"{pod}: its node {pod.node} has no {', '.join(missing)} (any more)"
            self.ledger.see(holding)

    def _missing(self, holding: Holding) -> list[str]:
        """The devices of these that the node does not tell of, where it tells of any."""
        there = self._devices(holding.node)
        return [
            f"{KINDS[take.kind].word} {take.device_id}"
            for take in holding.takes
            if there and take.device_id not in there
        ]

    def _check(self, pod: SharePod, holding: Holding) -> None:
        """Raises NotFound where the node gave it another device than its assignment says, or has that one as another
        kind of device: then what is listed is what it has."""
        devices = self._devices(pod.node)
        for take in holding.takes:
            device = devices.get(take.device_id)
            if device is not None and device.kind is not take.kind:
                said, word = KINDS[take.kind].word, KINDS[device.kind].word
                raise NotFound(f"its assignment has {device.id} as {said}, which is {word} of node {pod.node}")
        listed = self._listed(pod)
        if listed is not None:
            assigned = {take.device_id for take in holding.takes}
            others = {take.device_id for take in listed.takes} - assigned
            if others:
                raise NotFound(
                    f"its assignment is of {', '.join(sorted(assigned)) or 'nothing'}, but it has a part of "
                    f"{', '.join(sorted(others))}"
                )

    def _devices(self, name: str) -> Mapping[str, Device]:
        """The devices that a node tells of, by their ids."""
        node = self.ledger.node(name)
        return {} if node is None else node.devices

    def _listed(self, pod: SharePod) -> Holding | None:
        node = self.ledger.node(pod.node)
        return node.listed.get(pod.uid) if node is not None else None
