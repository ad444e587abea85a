"""A running cluster: kube-scheduler minds cores and RAM and places pods without GPUs, and the assigner is told of
Nodes, AcceleratorNodes and pods as by the API server.

``python -m tests.kit.sim.cluster.running_cluster NODES PODS`` prints, for an openb trace, the allocated percent of all
GPUs at 100 % arrival (seeds 42 to 44) where the assigner is told of nodes' cores and RAM, and where it is not.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement.policies import DEFAULT, POLICIES
from sharemgr.cluster.state.books import AcceleratorNode
from sharemgr.cluster.state.cores import Cores, parse_offer
from sharemgr.cluster.state.nodes import Inventory
from sharemgr.cluster.state.pods import parse_pod
from sharemgr.cluster.state.request import Request
from sharemgr.replay.arrivals import Moment, arrivals, at_percent, capacity_units
from sharemgr.replay.openb import read_nodes, read_pods


class Cluster:
    """Nodes, and of kube-scheduler what has to do with cores and RAM."""

    def __init__(self, nodes: Sequence[Inventory], tells_cores: bool = True) -> None:
        self.free = {node.node: Cores(node.cpu_milli or 0, node.ram_mib or 0) for node in nodes}
        self._assigner = Assigner(POLICIES[DEFAULT], keeps_choice=True)
        self._assigner.nodes_listed(
            [AcceleratorNode(node._replace(cpu_milli=None, ram_mib=None)) for node in nodes if node.devices]
        )
        if tells_cores:
            self._assigner.offers_listed([parse_offer(node_json(name, free)) for name, free in self.free.items()])

    def place(self, uid: str, request: Request) -> str | None:
        """The node that a pod comes to."""
        need = Cores(request.cpu_milli, request.ram_mib)
        names = [
            name
            for name, free in self.free.items()
            if free.cpu_milli >= need.cpu_milli and free.ram_mib >= need.ram_mib
        ]
        thing = pod_json(uid, request)
        if request.asks:
            pod = parse_pod(thing)
            names = self._assigner.filter(pod, names).nodes
            if not names:
                self._assigner.forget(uid)
                return None
            placed, holding = self._assigner.decide(pod, names[0])
            self._assigner.books.ledger.assume(holding)
            thing["metadata"]["annotations"]["edge/gpu-assignment"] = placed.assignment
        elif not names:
            return None
        else:
            # As its plugin NodeResourcesFit does by default: where most is left.
            names = [max(names, key=lambda name: self.free[name].cpu_milli)]
        thing["spec"]["nodeName"] = names[0]
        self._assigner.pod_told("ADDED", parse_pod(thing))
        self.free[names[0]] -= need
        return names[0]


def node_json(name: str, offered: Cores) -> dict[str, Any]:
    allocatable = {"cpu": f"{offered.cpu_milli}m", "memory": f"{offered.ram_mib}Mi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"allocatable": allocatable}}


def pod_json(uid: str, request: Request) -> dict[str, Any]:
    containers = [
        {
            "name": "main",
            "resources": {
                "requests": {"cpu": f"{request.cpu_milli}m", "memory": f"{request.ram_mib}Mi"},
                "limits": {"edge/gpu-percent": str(ask.devices * ask.units)} if ask is not None else {},
            },
        }
        for ask in request.asks or (None,)
    ]
    annotations = {"edge/gpu-model": ",".join(request.models)} if request.models else {}
    return {
        "metadata": {"uid": uid, "namespace": "d", "name": uid, "annotations": annotations},
        "spec": {"containers": containers},
    }


def allocated_percent(nodes: Sequence[Inventory], order: Sequence[Request], tells_cores: bool = True) -> list[float]:
    """After each arrival."""
    cluster, units, found = Cluster(nodes, tells_cores), 0, []
    for number, request in enumerate(order):
        if cluster.place(f"u{number}", request) is not None:
            units += request.units
        found.append(100 * units / capacity_units(nodes))
    return found


def main() -> None:
    """See the module."""
    nodes, pods = read_nodes(Path(sys.argv[1])), read_pods(Path(sys.argv[2]))
    units = capacity_units(nodes)
    for tells_cores in (True, False):
        found = []
        for seed in (42, 43, 44):
            order, arrived, moments = arrivals(pods, units, seed), 0, []
            for request, allocated in zip(order, allocated_percent(nodes, order, tells_cores), strict=True):
                arrived += request.units
                moments.append(Moment(100 * arrived / units, allocated, None))
            found.append(at_percent(moments)[100])
        each = ", ".join(f"{allocated:.2f}" for allocated in found)
        print(f"{'told' if tells_cores else 'not told'} of cores: {fmean(found):.2f} ({each})", flush=True)


if __name__ == "__main__":
    main()
