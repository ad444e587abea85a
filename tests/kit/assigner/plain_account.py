"""A plain account of all that pods and nodes said, which the assigner's own has to come to."""

import json
from dataclasses import dataclass
from typing import Any

from edgeshare.contract.units import UNITS_PER_DEVICE, memory_cap_mib
from sharemgr.cluster.state.books import AcceleratorNode
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Holding, Take


@dataclass(frozen=True)
class Said:
    """What a pod says of itself."""

    uid: str
    percents: tuple[int, ...]
    memory_mib: int = 0
    affinity: str = ""
    exclusion: str = ""
    models: str = ""
    node: str = ""
    assignment: str | None = None
    phase: str = "Running"

    @property
    def pod(self) -> SharePod:
        """The pod as the API server tells of it."""
        memory = {"edge/gpu-memory-mib": str(self.memory_mib)} if self.memory_mib else {}
        containers = [
            {"name": f"c{place}", "resources": {"limits": {"edge/gpu-percent": str(percent), **memory}}}
            for place, percent in enumerate(self.percents)
        ]
        labels = {"edge/gpu-affinity": self.affinity, "edge/gpu-exclusion": self.exclusion}
        annotations = {"edge/gpu-assignment": self.assignment, "edge/gpu-model": self.models or None}
        metadata = {"uid": self.uid, "namespace": "d", "name": self.uid, "labels": labels, "annotations": annotations}
        spec: dict[str, Any] = {"nodeName": self.node, "containers": containers}
        return parse_pod({"metadata": metadata, "spec": spec, "status": {"phase": self.phase}})

    def takes(self, totals_mib: dict[str, int]) -> list[Take] | None:
        """What its assignment gives it; None where that is nonsense, or it is bound by nobody's leave."""
        try:
            assigned = json.loads(self.assignment or "")
        except ValueError:
            return None
        if not isinstance(assigned, dict) or self.pod.fault:
            return None
        takes = []
        for place, percent in enumerate(self.percents):
            gpus = assigned.get(f"c{place}", [])
            if len(gpus) != max(1, percent // UNITS_PER_DEVICE):
                return None
            units = min(percent, UNITS_PER_DEVICE)
            for gpu in gpus:
                takes.append(Take(gpu, units, memory_cap_mib(self.memory_mib, totals_mib.get(gpu, 0), units)))
        return takes


class PlainAccount:
    """What was said last by each node and first by each pod, and what is assumed of bindings that nobody has seen."""

    def __init__(self) -> None:
        self.told: dict[str, AcceleratorNode] = {}
        self.bound: dict[str, Said] = {}
        """Pods that are, as they first said; those that the assigner knows of."""
        self.assumed: dict[str, tuple[Said, Holding]] = {}

    def account(self, name: str) -> list[tuple[str, Take]]:
        """Who has what of a node, by its inventory as it is now."""
        node = self.told[name]
        totals_mib = {gpu.id: gpu.memory_mib for gpu in node.inventory.devices}
        listed: dict[str, list[Take]] = {}
        for each in node.allocations:
            listed.setdefault(each.pod_uid or f"allocation {each.id}", []).extend(each.takes)
        held: list[tuple[str, Take]] = []
        for uid, said in self.bound.items():
            if said.node == name:
                of_node = listed.pop(uid, [])
                takes = said.takes(totals_mib)
                if takes is None or {take.device_id for take in of_node} - {take.device_id for take in takes}:
                    takes = of_node
                held += [(uid, take) for take in takes]
        for uid, (said, holding) in self.assumed.items():
            if said.node == name:
                listed.pop(uid, None)
                held += [(uid, take) for take in holding.takes]
        return held + [(uid, take) for uid, takes in listed.items() for take in takes]

    def free(self, name: str) -> dict[str, tuple[int, int]]:
        """Units and MiB that are free of each of a node's GPUs; less than none where it is over-committed."""
        held = self.account(name)
        return {
            gpu.id: (
                UNITS_PER_DEVICE - sum(take.units for _, take in held if take.device_id == gpu.id),
                gpu.memory_mib - sum(take.memory_mib for _, take in held if take.device_id == gpu.id),
            )
            for gpu in self.told[name].inventory.devices
        }
