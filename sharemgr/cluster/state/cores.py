"""Processor time and RAM: what a node offers, and what pods without GPUs leave of it to those with.

Policies look at it. kube-scheduler alone decides by it: it knows more of both.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.quantity import thousandths
from edgeshare.kube.faults import first_fault

MIB_THOUSANDTHS = 1000 << 20
"""Of a byte."""


@dataclass(frozen=True, slots=True)
class Cores:
    """An amount of processor time and RAM."""

    cpu_milli: int = 0
    ram_mib: int = 0

    def __add__(self, other: "Cores") -> "Cores":
        return Cores(self.cpu_milli + other.cpu_milli, self.ram_mib + other.ram_mib)

    def __sub__(self, other: "Cores") -> "Cores":
        return Cores(self.cpu_milli - other.cpu_milli, self.ram_mib - other.ram_mib)


def parse_cores(quantities: Mapping[str, Any], where: str) -> Cores:
    """What is said of ``cpu`` and ``memory``, nothing where it is not. Raises InvalidRequest for no quantity."""
    return Cores(
        thousandths(quantities.get("cpu", "0"), f"{where}: cpu"),
        thousandths(quantities.get("memory", "0"), f"{where}: memory") // MIB_THOUSANDTHS,
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node has for pods."""

    node: str
    cores: Cores | None
    """None: it does not tell, or is gone."""


class Left:
    """What is left of each node's offer to pods with GPUs."""

    def __init__(self) -> None:
        self._offers: dict[str, Cores] = {}
        self._others: dict[str, tuple[str, Cores]] = {}
        """Pods without GPUs, by uid: on which node, and what they ask for."""
        self._taken: dict[str, Cores] = {}
        """By them, by node."""

    def on(self, node: str) -> Cores | None:
        """What is left on a node; None where it has not told of its offer."""
        offer = self._offers.get(node)
        return None if offer is None else offer - self._taken.get(node, Cores())

    @property
    def others(self) -> Set[str]:
        """The uids of the pods without GPUs."""
        return self._others.keys()

    def offered(self, offer: Offer) -> bool:
        """A node tells; returns whether it is news."""
        before = self._offers.pop(offer.node, None)
        if offer.cores is not None:
            self._offers[offer.node] = offer.cores
        return before != offer.cores

    @property
    def nodes(self) -> Set[str]:
        """The nodes that have told of their offers."""
        return self._offers.keys()

    def taken(self, uid: str, node: str, cores: Cores) -> bool:
        """A pod without GPUs is on a node; returns whether it is news."""
        if self._others.get(uid) == (node, cores):
            return False
        self.given_back(uid)
        self._others[uid] = node, cores
        self._taken[node] = self._taken.get(node, Cores()) + cores
        return True

    def given_back(self, uid: str) -> str | None:
        """Takes in that a pod is over, or gone; returns its node, None where there was no such pod."""
        node, cores = self._others.pop(uid, (None, Cores()))
        if node is not None:
            self._taken[node] -= cores
            if self._taken[node] == Cores():
                del self._taken[node]
        return node


class _Metadata(BaseModel):
    name: str = Field(min_length=1)


class _Allocatable(BaseModel):
    cpu: str | None = None
    memory: str | None = None


class _Status(BaseModel):
    allocatable: _Allocatable = _Allocatable()


class _Node(BaseModel):
    metadata: _Metadata
    status: _Status = _Status()


def parse_offer(thing: object) -> Offer:
    """From a Node's plain JSON; one that nobody runs tells of nothing. Raises InvalidRequest for what is no Node."""
    try:
        node = _Node.model_validate(thing)
    except ValidationError as error:
        raise InvalidRequest(f"expected a Node: {first_fault(error)}") from error
    name, allocatable = node.metadata.name, node.status.allocatable
    if allocatable.cpu is None or allocatable.memory is None:
        return Offer(name, None)
    return Offer(name, parse_cores(allocatable.model_dump(), f"Node {name}"))
