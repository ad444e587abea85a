"""What the API server tells the books of the assigner: nodes, their GPUs, what they list, and pods that have parts."""

import json
from collections.abc import Mapping, Sequence

from sharemgr.cluster.state.books import AcceleratorNode, Books, Listed
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Take

G, H = Device("g", "T4", 1000), Device("h", "T4", 1000)


def node(*allocations: Listed, name: str = "n", gpus: Sequence[Device] = (G, H)) -> AcceleratorNode:
    """What a node tells of itself: its GPUs, and the allocations that it lists."""
    return AcceleratorNode(Inventory(name, tuple(gpus)), allocations)


def listed(uid: str, gpu: str, units: int, memory_mib: int, name: str = "") -> Listed:
    """An allocation of one pod on one GPU."""
    return Listed(name or f"of {uid}", uid, (Take(gpu, units, memory_mib),))


def pod(
    uid: str,
    gpus: Mapping[str, Sequence[str]] | str | None,
    percent: str = "40",
    on: str = "n",
    phase: str = "Running",
    memory_mib: str = "",
    init: Sequence[tuple[str, str, bool]] = (),
    cpu: str = "0",
    memory: str = "0",
    **labels: str,
) -> SharePod:
    """One of container main; ``init`` are names, percents, and whether they stay."""
    limits = {"edge/gpu-percent": percent} | ({"edge/gpu-memory-mib": memory_mib} if memory_mib else {})
    before = [
        {"name": name, "resources": {"limits": {"edge/gpu-percent": of}}}
        | ({"restartPolicy": "Always"} if stays else {})
        for name, of, stays in init
    ]
    metadata: dict[str, object] = {"uid": uid, "namespace": "d", "name": uid}
    metadata["labels"] = {f"edge/gpu-{key}": value for key, value in labels.items()}
    if gpus is not None:
        metadata["annotations"] = {"edge/gpu-assignment": gpus if isinstance(gpus, str) else json.dumps(gpus)}
    resources = {"limits": limits, "requests": {"cpu": cpu, "memory": memory}}
    spec = {"nodeName": on, "initContainers": before, "containers": [{"name": "main", "resources": resources}]}
    return parse_pod({"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def held(books: Books, name: str = "n") -> dict[str, tuple[int, int]]:
    """Units and MiB that are held of each GPU of which any are."""
    there = books.ledger.node(name)
    return {} if there is None else {gpu: (use.units, use.memory_mib) for gpu, use in there.use.items()}


def books_of(*nodes: AcceleratorNode) -> Books:
    """Books that were told of these nodes, and of no pod."""
    books = Books()
    books.nodes_listed(nodes)
    return books
