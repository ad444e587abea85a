"""Who has how much of each physical device of the cluster: units and MiB, and each node's processor time and RAM where
they are told.

A pod holds what its Binding says (assumed at first, then seen by the watch), or else what its node's AcceleratorNode
lists for it. So what it had is free only when both are gone: when the pod is over and its node's manager has let it go.
What the API server says is a fact and is taken in even where it over-commits a device; what is assumed never does.
(Whether a node has the cores and RAM is decided before: by kube-scheduler, or in a replay by placing.py.)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state.eligibility import has_room, obtainable
from sharemgr.cluster.state.nodes import Device, Inventory, Node, Use
from sharemgr.cluster.state.request import UNKNOWN, Holding, Take

T = TypeVar("T")


class Ledger:
    """All nodes and all holdings."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._bound: dict[str, Holding] = {}
        self._assumed: set[str] = set()
        self._aside: dict[str, Holding] = {}
        """What room is kept for, by pod."""
        self._changed: dict[str, None] = {}
        self._changes = 0
        self._changed_at: dict[str, int] = {}
        """By node: how many changes there had been with its last."""
        self.kinds: set[Accelerator] = set()
        """Of devices, of which any node has ever told one."""
        self._affinities: dict[str, Counter[tuple[str, str]]] = {}
        """By affinity: how many parts of each device (node, device) its pods hold."""

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
        """The devices (node, device) that pods of this affinity hold, and how many parts of each: one device, unless
        somebody chose otherwise."""
        return self._affinities.get(affinity, {})

    def take_changed(self) -> list[str]:
        """The nodes that changed, came or went since the last call."""
        changed, self._changed = list(self._changed), {}
        return changed

    def changed_at(self, name: str) -> int:
        """A number that is another one after each change of that node."""
        return self._changed_at.get(name, 0)

    def set_inventory(self, inventory: Inventory) -> None:
        """A node has told what it has; what pods hold of it stays."""
        node = self._nodes.get(inventory.node)
        if node is None or node.inventory != inventory:
            node = self._node(inventory.node)
            node.tells(inventory)
            self.kinds.update(node.kinds)

    def drop_node(self, name: str) -> None:
        """A node is gone, and what was listed there with it; what pods are bound to stays until they are gone."""
        if name in self._nodes:
            self.set_inventory(Inventory(name, ()))
            self.list_holdings(name, ())

    def assume(self, holding: Holding) -> None:
        """Reserves what a pod is about to be bound to; what was set aside for it is that, or is given back.

        Raises AlreadyExists where it holds something, NotFound and Unavailable where a device is not there or not
        healthy, NoRoom where it has not as much; then nothing is changed, but that what was set aside for it may be
        given back.
        """
        if holding.uid in self._bound:
            raise AlreadyExists(f"pod {holding.uid} is bound to {self._bound[holding.uid].node} already")
        node = self._nodes.get(holding.node)
        if node is None:
            raise NotFound(f"node {holding.node} has told of no device")
        if holding.uid in node.listed:
            raise AlreadyExists(f"pod {holding.uid} has an allocation on node {holding.node} already")
        _check(holding)
        aside = self._aside.get(holding.uid)
        if aside is not None and aside != holding:
            self.give_back(aside)
            aside = None
        if aside is None:
            _check_room(node, holding)
            self._hold(holding, 1)
        else:
            del self._aside[holding.uid]
        self._bound[holding.uid] = holding
        self._assumed.add(holding.uid)

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
        node = self._nodes.get(name)
        before = {} if node is None else node.listed
        new = [holding for uid, holding in listed.items() if before.get(uid) is not holding]
        for holding in new:
            _check(holding)
            if holding.node != name:
                raise InvalidRequest(f"node {name} lists a pod of node {holding.node}: {holding.uid}")
        # What is listed of bound pods changes nothing that is free.
        node = node or self._node(name)
        for uid, holding in before.items():
            if listed.get(uid) is not holding and not self._is_bound_to(uid, name):
                self._hold(holding, -1)
        for holding in new:
            # A node knows nothing of labels.
            is_bound = self._is_bound_to(holding.uid, name)
            known = self._bound[holding.uid] if is_bound else before.get(holding.uid)
            if known is not None:
                listed[holding.uid] = holding.labelled(known)
        node.listed = listed
        for holding in new:
            if not self._is_bound_to(holding.uid, name):
                self._hold(listed[holding.uid], 1)
        self._forget_if_empty(name)

    def set_aside(self, holding: Holding) -> None:
        """Takes room, as for a pod that holds this, until it is given back, or the pod is assumed to hold that
        (promises.py)."""
        self._aside[holding.uid] = holding
        self._hold(holding, 1)

    def give_back(self, holding: Holding) -> None:
        """Ends that, unless the pod has it by now."""
        if self._aside.get(holding.uid) is holding:
            del self._aside[holding.uid]
            self._hold(holding, -1)
            self._forget_if_empty(holding.node)

    def overcommitted(self) -> list[tuple[str, Device]]:
        """The devices of which pods hold more than there is (node, device): some pod did not come through the
        assigner."""
        return [
            (node.inventory.node, device)
            for node in self
            # Of thousands of nodes most devices are nobody's.
            for device in (node.inventory.devices if node.use else ())
            if device.id in node.use and min(node.free(device)) < 0
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
            use = node.use.setdefault(take.device_id, Use())
            use.units += sign * take.units
            use.memory_mib += sign * take.memory_mib
            is_chosen_by_wish = KINDS[take.kind].is_chosen_by_wish
            _count(use.exclusions, holding.exclusion if is_chosen_by_wish else "", sign)
            if holding.program != UNKNOWN:
                _count(use.programs, (holding.program, take.units), sign)
            if not use.units and not use.memory_mib:
                del node.use[take.device_id]
            if holding.affinity and is_chosen_by_wish:
                together = self._affinities.setdefault(holding.affinity, Counter())
                _count(together, (holding.node, take.device_id), sign)
                if not together:
                    del self._affinities[holding.affinity]

    def _node(self, name: str) -> Node:
        self._note_change(name)
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = Node(name)
        return node

    def _forget_if_empty(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None or node.inventory != Inventory(name, ()):
            return
        if not (node.use or node.cpu_milli or node.ram_mib or node.listed):
            self._note_change(name)
            del self._nodes[name]

    def _note_change(self, name: str) -> None:
        self._changes += 1
        self._changed[name], self._changed_at[name] = None, self._changes


def _count(counter: Counter[T], what: T, sign: int) -> None:
    counter[what] += sign
    if not counter[what]:
        del counter[what]


def _check(holding: Holding) -> None:
    if min([holding.cpu_milli, holding.ram_mib, *(min(take.units - 1, take.memory_mib) for take in holding.takes)]) < 0:
        raise InvalidRequest(f"pod {holding.uid} holds less than nothing of node {holding.node}")


def _check_room(node: Node, holding: Holding) -> None:
    name = holding.node
    for take in _per_device(holding.takes):
        called = f"{KINDS[take.kind].word} {take.device_id}"
        device = node.devices.get(take.device_id)
        if device is None or device.kind is not take.kind:
            raise NotFound(f"{called} is not on node {name}")
        if not device.healthy:
            raise Unavailable(f"{called} of node {name} is not healthy")
        free_units, free_mib = node.free(device)
        # Who takes no memory may come to where others have too much of it.
        if not has_room(*obtainable(device, free_units, free_mib), take.units, take.memory_mib):
            raise NoRoom(
                f"pod {holding.uid} needs {take.units} units and {take.memory_mib} MiB of {called} of node {name}, "
                f"which has {free_units} of {UNITS_PER_DEVICE} units and {free_mib} of {device.memory_mib} MiB free"
            )


def _per_device(takes: Iterable[Take]) -> list[Take]:
    """Several containers of a pod may share a device."""
    together: dict[str, Take] = {}
    for take in takes:
        so_far = together.get(take.device_id)
        together[take.device_id] = take if so_far is None else so_far.and_as_much(take.units, take.memory_mib)
    return list(together.values())
