"""What was written about nodes, by their plugins and by the assigner, taken from the cluster again. The kubelet itself
has a node's units go: at once from what can be asked for, and after five minutes from the capacity, which it sets to 0.
"""

from collections.abc import Iterator, Mapping

from deviceplugin.cluster.accelerator_node import KIND
from deviceplugin.cluster.node import connect
from deviceplugin.config import Config
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import ACCELERATOR_NODES, ACCELERATOR_NODES_CRD, GPU_MEMORY_MIB, GPU_RELEASED
from edgeshare.kube.every_node import taken_from_every_node
from edgeshare.kube.kube import Kube

NO_MEMORY = {GPU_MEMORY_MIB: None}
CRD_PATH = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{ACCELERATOR_NODES_CRD}"


def remove(kube: Kube, node: str) -> list[str]:
    """Takes what was written about a node; the names of that. Raises Unavailable."""
    there = kube.node(node) or {}
    status = there.get("status") or {}
    taken = []
    if any(GPU_MEMORY_MIB in (status.get(field) or {}) for field in ("capacity", "allocatable")):
        kube.patch_node_status(node, {"status": {"capacity": NO_MEMORY, "allocatable": NO_MEMORY}})
        taken.append(GPU_MEMORY_MIB)
    if GPU_RELEASED in ((there.get("metadata") or {}).get("annotations") or {}):
        kube.patch_node_status(node, {"metadata": {"annotations": {GPU_RELEASED: None}}})
        taken.append(GPU_RELEASED)
    if kube.delete(f"{ACCELERATOR_NODES}/{node}"):
        taken.append(KIND)
    return taken


def removal(
    config: Config, environment: Mapping[str, str], all_nodes: bool, crds: bool
) -> Iterator[tuple[str, list[str]]]:
    """Takes it from this node, or from all of them, and the kind of their objects if that is wanted; yields each node,
    or the kind's own folder, with the names of what was taken. Raises InvalidRequest where there is no cluster or this
    node's name is not known, and Unavailable, where it is all nodes at the end, with what is left."""
    kube, node = connect(config, environment, needs_name=not all_nodes)
    if kube is None:
        raise InvalidRequest("there is no cluster to remove anything from: set kubeconfig in --config")
    if all_nodes:
        yield from taken_from_every_node(kube, lambda name: remove(kube, name), "something of ours")
    else:
        yield node, remove(kube, node)
    if crds and kube.delete(CRD_PATH):
        yield "customresourcedefinitions", [ACCELERATOR_NODES_CRD]
