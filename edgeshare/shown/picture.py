"""What the page shows, as plain JSON: the same of a node and of a cluster, where less of it is known. Pure."""

from typing import TypedDict

from edgeshare.contract.text import in_one_line

TEXT_MAX = 400
"""Characters of a name, or of a reason, that are shown: Kubernetes allows a namespace, a pod and a container 381
together."""


def line(text: str) -> str:
    """What is shown of a text that somebody else wrote."""
    return in_one_line(text, TEXT_MAX)


class Share(TypedDict):
    """One allocation's part of one device. None: it is not known."""

    id: str
    owner: str
    asked_percent: int
    limit_percent: int | None
    used_percent: float | None
    state: str
    """In words; empty where nobody knows."""
    waits: bool
    guarantee: str
    """``met``, ``missed`` or, where nobody knows, empty."""
    memory_mib: int
    """Its cap on this device; 0: none."""
    memory_used_mib: int | None
    facts: list[tuple[str, str]]
    """What else there is to know, each with its name."""


class Device(TypedDict):
    """One device, with those who have it."""

    id: str
    name: str
    model: str
    cause: str
    """Why it is not healthy; empty where it is."""
    mode: str
    """How those who have it come together on it, in words; empty where it is not known or nobody else is there."""
    temperature_c: float | None
    memory_mib: int
    memory_used_mib: int | None
    warning: str
    """What is wrong beside its health; empty: nothing."""
    shares: list[Share]


class Node(TypedDict):
    """A node with its devices; of a node alone the name is empty."""

    name: str
    fault: str
    """Why nothing is known of it; empty: it is."""
    stale: str
    """Since when what is told of it is not of now, and why; empty: it is."""
    devices: list[Device]


class Waiting(TypedDict):
    """Somebody who waits."""

    who: str
    what: str
    why: str


class Picture(TypedDict):
    """All that the page shows."""

    nodes: list[Node]
    waiting: list[Waiting]
    notice: str
    """What else is not known now; empty: all is."""
    nobody: str
    """What to say where there is no node."""
