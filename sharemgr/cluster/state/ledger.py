"""Who has how much of each physical GPU of the cluster: units and MiB, and each node's processor time and RAM where
they are told.

A pod holds what its Binding says (assumed at first, then seen by the watch), or else what its node's AcceleratorNode
lists for it. So what it had is free only when both are gone: when the pod is over and its node's manager has let it go.
What the API server says is a fact and is taken in even where it over-commits a GPU; what is assumed never does.
(Whether a node has the cores and RAM is decided before: by kube-scheduler, or in a replay by placing.py.)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state.request import UNKNOWN, Holding, Program, Take

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as its node tells of it."""

    id: str
    model: str
    memory_mib: int
    """Less what the driver keeps; 0 where memory is not shared out."""
    healthy: bool = True


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a node has. Processor time and RAM are what pods with GPUs may have of it, None where it is not known."""

    node: str
    gpus: tuple[Gpu, ...]
    cpu_milli: int | None = None
    ram_mib: int | None = None


@dataclass(slots=True)
class Use:
    """What pods have of one GPU."""

    units: int = 0
    memory_mib: int = 0
    exclusions: Counter[str] = field(default_factory=Counter)
    """How many parts of it are held by pods of each exclusion."""
    programs: Counter[tuple[Program, int]] = field(default_factory=Counter)
    """How many parts of so many units are held by pods of each program, but for the unknown one."""


class Node:
    """One node: its inventory, and what pods hold of it."""

    __slots__ = ("cpu_milli", "inventory", "listed", "ram_mib", "use")

    def __init__(self, name: str) -> None:
        self.inventory = Inventory(name, ())
        self.use: dict[str, Use] = {}
        """By GPU; one that has vanished stays while a pod holds units of it."""
        self.cpu_milli = 0
        """That pods hold."""
        self.ram_mib = 0
        self.listed: dict[str, Holding] = {}
        """What its AcceleratorNode lists, by pod."""

    def free(self, gpu: Gpu) -> tuple[int, int]:
        """Units and MiB of a GPU that nobody has; below 0 where it is over-committed."""
        use = self.use.get(gpu.id)
        if use is None:
            return UNITS_PER_DEVICE, gpu.memory_mib
        return UNITS_PER_DEVICE - use.units, gpu.memory_mib - use.memory_mib

    @property
    def cpu_free_milli(self) -> int | None:
        """None where it was not told."""
        return None if self.inventory.cpu_milli is None else self.inventory.cpu_milli - self.cpu_milli

    @property
    def ram_free_mib(self) -> int | None:
        """None where it was not told."""
        return None if self.inventory.ram_mib is None else self.inventory.ram_mib - self.ram_mib


class Ledger:
    """All nodes and all holdings."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._bound: dict[str, Holding] = {}
        self._assumed: set[str] = set()
        self._changed: dict[str, None] = {}
        self._affinities: dict[str, Counter[tuple[str, str]]] = {}
        """By affinity: how many parts of each GPU (node, GPU) its pods hold."""

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def node(self, name: str) -> Node | None:
        """The node of that name, if anything is known of it."""
        return self._nodes.get(name)

    def bound(self, uid: str) -> Holding | None:
        """What a pod's Binding gave it."""
        return self._bound.get(uid)

    def is_assumed(self, uid: str) -> bool:
        """Whether its Binding was not seen yet."""
        return uid in self._assumed

    def together(self, affinity: str) -> Mapping[tuple[str, str], int]:
        """The GPUs (node, GPU) that pods of this affinity hold, and how many parts of each: one GPU, unless somebody
        chose otherwise."""
        return self._affinities.get(affinity, {})

    def take_changed(self) -> list[str]:
        """The nodes that changed, came or went since the last call."""
        changed, self._changed = list(self._changed), {}
        return changed

    def set_inventory(self, inventory: Inventory) -> None:
        """A node has told what it has; what pods hold of it stays."""
        node = self._nodes.get(inventory.node)
        if node is None or node.inventory != inventory:
            self._node(inventory.node).inventory = inventory

    def drop_node(self, name: str) -> None:
        """A node is gone, and what was listed there with it; what pods are bound to stays until they are gone."""
        if name in self._nodes:
            self.set_inventory(Inventory(name, ()))
            self.list_holdings(name, ())

    def assume(self, holding: Holding) -> None:
        """Reserves what a pod is about to be bound to.

        Raises AlreadyExists where it holds something, NotFound and Unavailable where a GPU is not there or not healthy,
        NoRoom where it has not as much; then nothing is changed.
        """
        if holding.uid in self._bound:
            raise AlreadyExists(f"pod {holding.uid} is bound to {self._bound[holding.uid].node} already")
        node = self._nodes.get(holding.node)
        if node is None:
            raise NotFound(f"node {holding.node} has told of no GPU")
        if holding.uid in node.listed:
            raise AlreadyExists(f"pod {holding.uid} has an allocation on node {holding.node} already")
        _check(holding)
        _check_room(node, holding)
        self._bound[holding.uid] = holding
        self._assumed.add(holding.uid)
        self._hold(holding, 1)

    def see(self, holding: Holding) -> None:
        """The API server says what a pod is bound to."""
        _check(holding)
        self._assumed.discard(holding.uid)
        if self._bound.get(holding.uid) != holding:
            self.release(holding.uid)
            self._suppress(holding, -1)
            self._bound[holding.uid] = holding
            self._hold(holding, 1)

    def release(self, uid: str) -> None:
        """A pod is over, or its Binding came to nothing; what its node still lists for it stays held. A pod that holds
        nothing changes nothing."""
        holding = self._bound.pop(uid, None)
        self._assumed.discard(uid)
        if holding is not None:
            self._hold(holding, -1)
            node = self._node(holding.node)
            if uid in node.listed:
                node.listed[uid] = node.listed[uid].labelled(holding)
            self._suppress(holding, 1)
            self._forget_if_empty(holding.node)

    def list_holdings(self, name: str, holdings: Iterable[Holding]) -> None:
        """A node's AcceleratorNode lists these, and no others."""
        listed = {holding.uid: holding for holding in holdings}
        for holding in listed.values():
            _check(holding)
            if holding.node != name:
                raise InvalidRequest(f"node {name} lists a pod of node {holding.node}: {holding.uid}")
        # What is listed of bound pods changes nothing that is free.
        node = self._nodes.get(name) or self._node(name)
        for uid, holding in node.listed.items():
            if not self._is_bound_to(uid, name):
                self._hold(holding, -1)
        for uid, holding in listed.items():
            # A node knows nothing of labels.
            known = self._bound[uid] if self._is_bound_to(uid, name) else node.listed.get(uid)
            if known is not None:
                listed[uid] = holding.labelled(known)
        node.listed = listed
        for uid, holding in listed.items():
            if not self._is_bound_to(uid, name):
                self._hold(holding, 1)
        self._forget_if_empty(name)

    def set_aside(self, holding: Holding) -> None:
        """Takes room, as for a pod that holds this, until it is given back (promises.py)."""
        self._hold(holding, 1)

    def give_back(self, holding: Holding) -> None:
        """Ends that."""
        self._hold(holding, -1)
        self._forget_if_empty(holding.node)

    def overcommitted(self) -> list[tuple[str, str]]:
        """The GPUs of which pods hold more than there is (node, GPU): some pod did not come through the assigner."""
        return [
            (node.inventory.node, gpu.id) for node in self for gpu in node.inventory.gpus if min(node.free(gpu)) < 0
        ]

    def _is_bound_to(self, uid: str, name: str) -> bool:
        holding = self._bound.get(uid)
        return holding is not None and holding.node == name

    def _suppress(self, holding: Holding, sign: int) -> None:
        """What is listed for a pod counts only while it is not bound there."""
        node = self._nodes.get(holding.node)
        listed = node.listed.get(holding.uid) if node is not None else None
        if listed is not None:
            self._hold(listed, sign)

    def _hold(self, holding: Holding, sign: int) -> None:
        node = self._node(holding.node)
        node.cpu_milli += sign * holding.cpu_milli
        node.ram_mib += sign * holding.ram_mib
        for take in holding.takes:
            use = node.use.setdefault(take.gpu_id, Use())
            use.units += sign * take.units
            use.memory_mib += sign * take.memory_mib
            _count(use.exclusions, holding.exclusion, sign)
            if holding.program != UNKNOWN:
                _count(use.programs, (holding.program, take.units), sign)
            if not use.units and not use.memory_mib:
                del node.use[take.gpu_id]
            if holding.affinity:
                gpus = self._affinities.setdefault(holding.affinity, Counter())
                _count(gpus, (holding.node, take.gpu_id), sign)
                if not gpus:
                    del self._affinities[holding.affinity]

    def _node(self, name: str) -> Node:
        self._changed[name] = None
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = Node(name)
        return node

    def _forget_if_empty(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None or node.inventory != Inventory(name, ()):
            return
        if not (node.use or node.cpu_milli or node.ram_mib or node.listed):
            self._changed[name] = None
            del self._nodes[name]


def _count(counter: Counter[T], what: T, sign: int) -> None:
    counter[what] += sign
    if not counter[what]:
        del counter[what]


def _check(holding: Holding) -> None:
    if min([holding.cpu_milli, holding.ram_mib, *(min(take.units - 1, take.memory_mib) for take in holding.takes)]) < 0:
        raise InvalidRequest(f"pod {holding.uid} holds less than nothing of node {holding.node}")


def _check_room(node: Node, holding: Holding) -> None:
    name = holding.node
    gpus = {gpu.id: gpu for gpu in node.inventory.gpus}
    for take in _per_gpu(holding.takes):
        gpu = gpus.get(take.gpu_id)
        if gpu is None:
            raise NotFound(f"GPU {take.gpu_id} is not on node {name}")
        if not gpu.healthy:
            raise Unavailable(f"GPU {gpu.id} of node {name} is not healthy")
        free_units, free_mib = node.free(gpu)
        # Who takes no memory may come to where others have too much of it.
        if take.units > free_units or take.memory_mib > max(0, free_mib):
            raise NoRoom(
                f"pod {holding.uid} needs {take.units} units and {take.memory_mib} MiB of GPU {gpu.id} of node {name}, "
                f"which has {free_units} of {UNITS_PER_DEVICE} units and {free_mib} of {gpu.memory_mib} MiB free"
            )


def _per_gpu(takes: Iterable[Take]) -> list[Take]:
    """Several containers of a pod may share a GPU."""
    together: dict[str, Take] = {}
    for take in takes:
        so_far = together.get(take.gpu_id, Take(take.gpu_id, 0, 0))
        together[take.gpu_id] = Take(take.gpu_id, so_far.units + take.units, so_far.memory_mib + take.memory_mib)
    return list(together.values())
