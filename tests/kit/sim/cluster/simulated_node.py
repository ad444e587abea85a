"""A simulated node: its kubelet, its plugin, and what the plugin tells of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeshare.contract.devices import Accelerator
from edgeshare.contract.names import GPU_ASSIGNMENT
from sharemgr.cluster.state.accelerators import parse_node
from tests.kit.sim.cluster.simulated_api import Pod, gpu_needs

if TYPE_CHECKING:
    from tests.kit.sim.cluster.simulated_cluster import World


@dataclass(slots=True)
class Allocation:
    """What a plugin gave a container."""

    id: str
    uid: str
    gpus: tuple[str, ...]
    units_each: int
    memory_mib: int
    listed_from_s: float
    known_from_s: float
    """Its pod's uid is listed, too."""
    listed_until_s: float = float("inf")


class SimulatedNode:
    """A kubelet with its plugin: admits what its API server tells it of, in an order of its own; refuses a pod whose
    assigned GPU has no room."""

    def __init__(self, world: "World", name: str, models: list[tuple[str, int]]) -> None:
        self._world = world
        self.name = name
        self.gpus = {f"GPU-{name}-{place}": model for place, model in enumerate(models)}
        self.sick: set[str] = set()
        self.admitted: dict[str, dict[str, tuple[int, int]]] = {}
        """By uid: units and MiB of each GPU, until its last process is gone."""
        self.allocations: list[Allocation] = []
        self.is_told = True
        """There is an AcceleratorNode."""

    def publish(self) -> None:
        """Writes the AcceleratorNode as it is to be now."""
        if not self.is_told:
            return
        now_s = self._world.loop.time()
        self.allocations = [each for each in self.allocations if each.listed_until_s > now_s]
        devices = [
            {
                "id": gpu,
                "kind": Accelerator.GPU.value,
                "model": model,
                "memoryMiB": memory_mib,
                "healthy": gpu not in self.sick,
            }
            for gpu, (model, memory_mib) in self.gpus.items()
        ]
        allocations = [
            {
                "id": each.id,
                "devices": list(each.gpus),
                "unitsEach": each.units_each,
                "memoryMiB": each.memory_mib,
                "pod": {"uid": each.uid if each.known_from_s <= now_s else ""},
            }
            for each in self.allocations
            if each.listed_from_s <= now_s
        ]
        status = {"devices": devices, "allocations": allocations}
        told = parse_node({"metadata": {"name": self.name}, "status": status})
        assert not told.fault
        self._world.server.nodes.tell("MODIFIED", self.name, told)

    def bound(self, pod: Pod) -> None:
        """The kubelet is told a moment later, of some pods later than of others that came after."""
        rng = self._world.rng
        self._world.later(rng.choice((rng.uniform(0.001, 0.02), rng.uniform(0.001, 1.0))), self._admit, pod)

    def _admit(self, pod: Pod) -> None:
        world, uid = self._world, pod.uid
        if world.server.pods.get(str(pod.parsed)) is not pod or pod.is_leaving:
            return
        needs = gpu_needs(pod.json, world.memory_mib)
        assert set(needs) <= set(self.gpus), f"pod {pod.parsed} is assigned a GPU of another node: {needs}"
        if self.sick & set(needs):
            world.facts.refused_sick += 1
            world.server.end(pod, "Failed", "its GPU is not healthy")
            return
        full = [gpu for gpu, need in needs.items() if not self._has_room(gpu, need)]
        if full:
            world.facts.refused += 1
            if not set(full) & world.tainted:
                world.fail(f"the plugin refuses pod {pod.parsed} ({uid}): no room on {full}")
            world.server.end(pod, "Failed", f"no room on {full}")
            return
        world.facts.admitted += 1
        self.admitted[uid] = needs
        world.check_gpus(needs)
        now_s, rng = world.loop.time(), world.rng
        listed_s = now_s + rng.uniform(0.1, 2)
        known_s = listed_s + (rng.random() < 0.2) * rng.uniform(0.1, 2)
        for container, gpus, percent, memory_mib in containers_of(pod, world.memory_mib):
            made = Allocation(f"{uid}-{container}", uid, gpus, min(percent, 100), memory_mib, listed_s, known_s)
            self.allocations.append(made)
        for when_s in {listed_s: 0, known_s: 0}:
            world.later(when_s - now_s, self.publish)
        if world.is_busy and rng.random() < 0.6:
            world.later(rng.choice((rng.uniform(0.01, 3), rng.uniform(1, 60))), self._finish, pod)

    def _has_room(self, gpu: str, need: tuple[int, int]) -> bool:
        units, memory_mib = self.used(gpu)
        return units + need[0] <= 100 and memory_mib + need[1] <= self._world.memory_mib[gpu]

    def used(self, gpu: str) -> tuple[int, int]:
        """What the pods that were admitted have of a GPU."""
        there = [needs[gpu] for needs in self.admitted.values() if gpu in needs]
        return sum(units for units, _ in there), sum(mib for _, mib in there)

    def _finish(self, pod: Pod) -> None:
        if not pod.is_leaving and self._let_go(pod.uid):
            self._world.later(
                self._world.rng.uniform(0, 0.3), self._world.server.end, pod, "Succeeded", "it has run to its end"
            )

    def deleting(self, pod: Pod) -> None:
        """The kubelet ends it and says so; of one that was deleted by force some process runs on."""
        rng = self._world.rng
        if pod.is_forced:
            self._world.later(rng.uniform(0.5, 10), self._let_go, pod.uid)
        else:
            self._world.later(rng.uniform(0.001, 3), self._ended, pod)

    def _ended(self, pod: Pod) -> None:
        self._let_go(pod.uid)
        self._world.later(self._world.rng.uniform(0.001, 0.3), self._world.server.gone, pod)

    def _let_go(self, uid: str) -> bool:
        if self.admitted.pop(uid, None) is None:
            return False
        now_s = self._world.loop.time()
        gone_s = now_s + self._world.rng.uniform(0.2, 5)
        for each in self.allocations:
            if each.uid == uid:
                each.listed_until_s = gone_s
        self._world.later(gone_s - now_s, self.publish)
        return True

    def is_known(self, uid: str) -> bool:
        """Whether the leader was told what the pod has here: before that it cannot know of a process that runs on when
        the pod is deleted by force."""
        leader = self._world.leader
        there = leader.assigner.books.ledger.node(self.name) if leader is not None and leader.is_ready else None
        return there is not None and uid in there.listed

    def loses_node(self) -> None:
        """Its AcceleratorNode is deleted; the plugin makes it anew."""
        if self.is_told:
            self._world.log(f"AcceleratorNode {self.name} is deleted")
            told = self._world.server.nodes.now[self.name]
            self._world.server.nodes.tell("DELETED", self.name, told)
            self.is_told = False
            self._world.later(self._world.rng.uniform(0.3, 5), self.regains_node)

    def regains_node(self) -> None:
        self.is_told = True
        self.publish()

    def falls_sick(self, gpu: str) -> None:
        self._world.log(f"{gpu} is not healthy")
        self.sick.add(gpu)
        self._world.later(self._world.rng.uniform(0.1, 1), self.publish)
        self._world.later(self._world.rng.uniform(5, 30), self.recovers, gpu)

    def recovers(self, gpu: str) -> None:
        self.sick.discard(gpu)
        self.publish()


def containers_of(pod: Pod, totals_mib: dict[str, int]) -> Iterator[tuple[str, tuple[str, ...], int, int]]:
    """Name, GPUs, percent and MiB of each."""
    assignment = json.loads(pod.json["metadata"]["annotations"][GPU_ASSIGNMENT])
    spec = pod.json["spec"]
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        limits, gpus = container["resources"]["limits"], assignment[container["name"]]
        percent = int(limits["edge/gpu-percent"])
        default_mib = totals_mib[gpus[0]] * min(percent, 100) // 100
        yield container["name"], tuple(gpus), percent, int(limits.get("edge/gpu-memory-mib", default_mib))
