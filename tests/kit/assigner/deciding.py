"""An assigner that decides in this process: of which nodes, for which pods, and pods placed as their binding would."""

from collections.abc import Sequence
from typing import Any

from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.state.books import AcceleratorNode, Listed
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod


def node(name: str, *gpus: Device, allocations: Sequence[Listed] = ()) -> AcceleratorNode:
    """What a node tells of itself."""
    return AcceleratorNode(Inventory(name, gpus), tuple(allocations))


def gpu(name: str, memory_mib: int = 1000, model: str = "T4", healthy: bool = True) -> Device:
    """A GPU whose id is its name."""
    return Device(name, model, memory_mib, healthy)


def pod(
    uid: str, *percents: str, models: str = "", on: str = "", assignment: str = "", cpu: str = "0", **labels: str
) -> SharePod:
    """One that asks for so many percent in each of its containers, c0 and on; ``labels`` are of the kind edge/gpu-."""
    annotations = {"edge/gpu-model": models, "edge/gpu-assignment": assignment}
    metadata: dict[str, Any] = {"uid": uid, "namespace": "d", "name": uid}
    metadata["annotations"] = {key: text for key, text in annotations.items() if text}
    metadata["labels"] = {f"edge/gpu-{key}": text for key, text in labels.items()}
    containers = [
        {"name": f"c{place}", "resources": {"limits": {"edge/gpu-percent": percent}, "requests": {"cpu": cpu}}}
        for place, percent in enumerate(percents)
    ]
    return parse_pod({"metadata": metadata, "spec": {"nodeName": on, "containers": containers}})


def assigner_of(*nodes: AcceleratorNode, policy: str = "usable", keeps_choice: bool = False) -> Assigner:
    """An assigner that was told of these nodes."""
    assigner = Assigner(POLICIES[policy], keeps_choice)
    assigner.nodes_listed(nodes)
    return assigner


def place(assigner: Assigner, asking: SharePod, on: str) -> SharePod:
    """The pod with its assignment on that node, which is assumed from then on."""
    placed, holding = assigner.decide(asking, on)
    assigner.books.ledger.assume(holding)
    return placed


def many(count: int) -> tuple[list[str], Assigner]:
    """So many nodes of one GPU: their names, and their assigner."""
    names = [f"n{number:03}" for number in range(count)]
    return names, assigner_of(*(node(name, gpu(f"{name}-g")) for name in names))
