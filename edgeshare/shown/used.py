"""A cluster's devices and how they are used, as the cluster part tells it, with the pods that wait; and what of that is
not of now, in words."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from edgeshare.contract.text import in_one_line
from edgeshare.contract.units import NS_PER_S
from edgeshare.shown.waiting_pods import LINE_MAX, Waiting
from edgeshare.v1.cluster_pb2 import ClusterState, NodeState

NO_NODES = "no node tells of devices: is the device plugin installed, with the API server's address?"


@dataclass(frozen=True, slots=True)
class Used:
    """What the cluster part told of the use of devices, and the API server of pods that wait."""

    state: ClusterState
    """With all nodes."""
    waiting: list[Waiting]
    waiting_unknown: str
    """Why it is not known which pods wait; empty: it is."""
    namespace: str
    """Of which all that is; empty: of all."""


def nobody(used: Used) -> str:
    """What to say where no node is told of."""
    return f"nobody has a share in namespace {used.namespace}" if used.namespace else NO_NODES


def of_api_server(used: Used) -> Iterator[str]:
    """What is not known as an API server does not answer."""
    if used.state.stale_since_ns:
        when = _when(used.state.stale_since_ns)
        yield f"the API server does not answer the service, stale since {when}: nodes may be missing"
    if used.waiting_unknown:
        yield f"which pods wait is not known: {used.waiting_unknown}"


def staleness(node: NodeState) -> str:
    """Since when what is told of a node is not of now, and why; empty where it is."""
    if not node.error:
        return ""
    since = f"stale since {_when(node.told_at_ns)}" if node.told_at_ns else "did not tell yet"
    return f"{since}: {in_one_line(node.error, LINE_MAX)}"


def _when(unix_ns: int) -> str:
    # With the zone: the cluster part's is most often not that of who reads it.
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(unix_ns / NS_PER_S))
