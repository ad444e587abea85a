"""A simulated cluster around the real assigner: nodes with their kubelets and plugins, kube-scheduler, replicas that
lead one after the other, and users. What is true is kept here, apart from all that the assigner believes."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from simulated_api import ApiServer, Client, Pod, Weather, gpu_needs
from simulated_node import SimulatedNode
from simulated_replica import Replica
from simulated_time import JumpingLoop, Log

<<<<<<< HEAD
from edgeshare.devices import Accelerator
from edgeshare.errors import EdgeshareError, Unavailable
from sharemgr.cluster.accelerators import parse_node
from sharemgr.cluster.assigner import Assigner
from sharemgr.cluster.binding import Binder
from sharemgr.cluster.pods import SharePod
from sharemgr.cluster.policies import POLICIES
=======
from edgeshare.errors import EdgeshareError
>>>>>>> safety

SCHEDULER_TIMEOUT_S = 5.0
LEASE_S, RENEW_DEADLINE_S = 15.0, 10.0
<<<<<<< HEAD
SETTLE_S = 5.0
LISTED_SURELY_S = 45.0
"""After so long a leader has been told of what an AcceleratorNode lists, whatever its watch went through."""


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

    def is_listed_long(self, uid: str) -> bool:
        """Whether any leader knows by now what the pod has here."""
        mine = [each for each in self.allocations if each.uid == uid]
        return self.is_told and bool(mine) and self._world.loop.time() - mine[0].known_from_s > LISTED_SURELY_S

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
    for container, gpus in pod.parsed.assigned():
        yield (
            container.name,
            gpus,
            container.percent,
            container.memory_mib or (totals_mib[gpus[0]] * min(container.percent, 100) // 100),
        )


class Replica:
    """One that leads: its assigner and binder are the real ones."""

    def __init__(self, world: "World", number: int) -> None:
        self.number = number
        self._world = world
        self.assigner = Assigner(POLICIES[world.policy], world.keeps_choice)
        self.client = Client(number, world.server, world.rng, world.weather)
        self.binder = Binder(self.assigner, self.client, BIND_TIMEOUT_S, world.loop.time)
        self._whole = {"pods": False, "nodes": False}
        self.answers = True
        self._tasks: list[asyncio.Task[Any]] = []
        self._binds: set[asyncio.Task[None]] = set()

    @property
    def is_ready(self) -> bool:
        return self.answers and all(self._whole.values())

    def start(self) -> None:
        """It leads, and reads all that there is."""
        world, server = self._world, self._world.server

        def began() -> None:
            server.reading = max(server.reading, self.number)

        def pods_listed(pods: list[SharePod]) -> None:
            self.assigner.pods_listed(pods)
            self._whole["pods"] = True

        def nodes_listed(nodes: list[Any]) -> None:
            self.assigner.nodes_listed(nodes)
            self._whole["nodes"] = True

        world.log(f"replica {self.number} leads")
        self._tasks = [
            world.spawn(server.bound.follow(world.rng, world.weather, pods_listed, self.assigner.pod_told, began)),
            world.spawn(server.nodes.follow(world.rng, world.weather, nodes_listed, self.assigner.node_told)),
            world.spawn(self._settle()),
        ]

    async def _settle(self) -> None:
        while True:
            await asyncio.sleep(SETTLE_S)
            await self.binder.settle()

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """The verb. Goes on where nobody waits for it any more."""
        if not self.is_ready:
            raise Unavailable("another replica leads")
        task = self._world.spawn(self._bind(namespace, name, uid, node))
        self._binds.add(task)
        task.add_done_callback(self._binds.discard)
        await asyncio.wait({task})
        if task.cancelled():
            raise Unavailable("the connection broke")
        task.result()

    async def _bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        began_s = self._world.loop.time()
        try:
            await self.binder.bind(namespace, name, uid, node)
        finally:
            assert self._world.loop.time() - began_s <= BIND_TIMEOUT_S + 0.001
        pod = self._world.server.pods.get(f"{namespace}/{name}")
        if pod is not None and pod.uid == uid and pod.parsed.node != node:
            self._world.fail(f"pod {pod.parsed} is said to be bound to {node}, and is on {pod.parsed.node or 'none'}")

    def stop(self, crashes: bool) -> None:
        """It ends; requests that it has sent are on their way."""
        self.answers = False
        for task in [*self._tasks, *(self._binds if crashes else ())]:
            task.cancel()
=======
>>>>>>> safety


@dataclass(slots=True)
class Facts:
    """What was seen in a run."""

    bound: int = 0
    admitted: int = 0
    refused: int = 0
    """For want of room: around a leader change alone."""
    refused_sick: int = 0
    leaders: int = 0
    written_late: int = 0
    """Bindings of a replica that led no longer, after the next had read what there is."""
    waiting: int = 0
    """Pods that did not fit in the end."""


@dataclass
class World:
    """All of it."""

    rng: random.Random
    weather: Weather
    policy: str = "usable"
    keeps_choice: bool = False
    changes_leader: bool = True
    facts: Facts = field(default_factory=Facts)
    tainted: set[str] = field(default_factory=set)
    """GPUs that a replica assigned in a Binding that was written only when the next had read what there is."""
    is_busy: bool = True

    def __post_init__(self) -> None:
        self.loop = JumpingLoop()
        self.log = Log(self.loop.time)
        self.server = ApiServer(self.loop, self.log, self._bound, self._deleting)
        self.nodes: dict[str, SimulatedNode] = {}
        self.memory_mib: dict[str, int] = {}
        self.leader: Replica | None = None
        self.said: dict[str, str] = {}
        """By uid: why it was turned down last, or what went wrong."""
        self.failure: BaseException | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._uids = 0

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs it beside all else; what goes wrong in it fails the run."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, EdgeshareError):
            self.failure = self.failure or error

    def later(self, after_s: float, do: Callable[..., object], *what: object) -> None:
        """Does it then."""

        def done() -> None:
            try:
                do(*what)
            except AssertionError as error:
                self.failure = self.failure or error

        self.loop.call_later(after_s, done)

    def fail(self, why: str) -> None:
        """Says what must not be."""
        self.log(f"WRONG: {why}")
        raise AssertionError(why)

    def add_node(self, name: str, models: list[tuple[str, int]]) -> None:
        node = self.nodes[name] = SimulatedNode(self, name, models)
        self.memory_mib |= {gpu: memory_mib for gpu, (_, memory_mib) in node.gpus.items()}
        node.publish()

    def new_uid(self) -> str:
        self._uids += 1
        return f"uid-{self._uids}"

    def _bound(self, pod: Pod, client: Client) -> None:
        self.facts.bound += 1
        try:
            needs = gpu_needs(pod.json, self.memory_mib)
            if client.number < self.server.reading:
                self.facts.written_late += 1
                self.tainted |= set(needs)
                self.log(f"that was replica {client.number}, after replica {self.server.reading} has read")
            self.check_gpus(needs)
        except AssertionError as error:
            self.failure = self.failure or error
        self.nodes[pod.parsed.node].bound(pod)

    def _deleting(self, pod: Pod) -> None:
        self.nodes[pod.parsed.node].deleting(pod)

    def bound_pods(self) -> list[Pod]:
        """Those that have a GPU by their annotation."""
        return [pod for pod in self.server.pods.values() if pod.parsed.node and not pod.parsed.is_over]

    def check_gpus(self, among: dict[str, tuple[int, int]]) -> None:
        """None of these is over-committed, by what was admitted or by what the annotations say; and their pods have one
        exclusion."""
        pods = self.bound_pods()
        for gpu in among:
            node = next(node for node in self.nodes.values() if gpu in node.gpus)
            units, memory_mib = node.used(gpu)
            if units > 100 or memory_mib > self.memory_mib[gpu]:
                self.fail(f"{units} units and {memory_mib} MiB of {gpu} are used")
            if gpu in self.tainted:
                continue
            there = [(pod, needs[gpu]) for pod in pods if gpu in (needs := gpu_needs(pod.json, self.memory_mib))]
            # Processes of a pod that was deleted by force may run on: they count as much.
            orphans = (
                [
                    node.admitted[uid][gpu]
                    for uid in node.admitted
                    if gpu in node.admitted[uid] and all(uid != pod.uid for pod, _ in there)
                ]
                if there
                else []
            )
            units = sum(need[0] for need in [*(need for _, need in there), *orphans])
            memory_mib = sum(need[1] for need in [*(need for _, need in there), *orphans])
            if units > 100 or memory_mib > self.memory_mib[gpu]:
                names = [f"{pod.parsed} ({pod.uid})" for pod, _ in there]
                self.fail(f"{units} units and {memory_mib} MiB of {gpu} are assigned to {names}")
            if len({pod.parsed.request.exclusion for pod, _ in there}) > 1:
                self.fail(f"pods of several exclusions are on {gpu}")
            model = node.gpus[gpu][0]
            if any(pod.parsed.request.models and model not in pod.parsed.request.models for pod, _ in there):
                self.fail(f"{gpu} is of model {model}")
        if not self.tainted:
            places: dict[str, set[str]] = {}
            for pod in pods:
                if pod.parsed.request.affinity:
                    places.setdefault(pod.parsed.request.affinity, set()).update(gpu_needs(pod.json, self.memory_mib))
            if any(len(gpus) > 1 for gpus in places.values()):
                self.fail(f"pods of one affinity have several GPUs: {places}")

    async def reign(self, until_s: float) -> None:
        """Replicas lead one after the other; the last one stays."""
        while True:
            self.facts.leaders += 1
            replica = self.leader = Replica(self, self.facts.leaders)
            replica.start()
            stays_s = self.rng.uniform(1, 40)
            if not self.changes_leader or self.loop.time() + stays_s > until_s:
                return
            await asyncio.sleep(stays_s)
            crashes = self.rng.random() < 0.5
            self.log(f"replica {replica.number} {'crashes' if crashes else 'does not get its lease renewed'}")
            if crashes:
                replica.stop(True)
                # Alone it starts again at once; another one waits until the lease is over.
                await asyncio.sleep(self.rng.choice((self.rng.uniform(0.5, 3), self.rng.uniform(13, 17))))
            else:
                await asyncio.sleep(RENEW_DEADLINE_S)
                replica.answers = False
                await asyncio.sleep(LEASE_S - RENEW_DEADLINE_S + self.rng.uniform(0, 2))
                replica.stop(False)

    async def schedule(self, pod: Pod) -> None:
        """kube-scheduler, for one pod: until it is bound or gone."""
        rng = self.rng
        attempts = 0
        while self.server.pods.get(str(pod.parsed)) is pod and not pod.parsed.node:
            attempts += 1
            leader = self.leader
            why = "no replica leads"
            if leader is not None and leader.is_ready:
                why = await self._attempt(pod, leader)
            if why:
                self.said[pod.uid] = why
            if (
                not pod.parsed.node
                and self.server.pods.get(str(pod.parsed)) is pod
                and rng.random() < self.weather.told
            ):
                # The condition PodScheduled, where it is another than before.
                self.server.changed(pod)
            await asyncio.sleep(rng.uniform(0.2, min(1.5 * attempts, 10)))

    async def _attempt(self, pod: Pod, leader: Replica) -> str:
        rng = self.rng
        seen = pod.before if self.is_busy and rng.random() < 0.15 else pod.parsed
        names = [name for name in self.nodes if not self.is_busy or rng.random() < 0.9] or list(self.nodes)
        found = leader.assigner.filter(seen, names)
        assert sorted([*found.nodes, *found.failed, *found.never]) == sorted(names)
        assert all([*found.failed.values(), *found.never.values()])
        if not found.nodes:
            return f"{found.failed or found.never}"
        scores = leader.assigner.prioritize(seen, found.nodes)
        node = max(found.nodes, key=lambda name: (scores[name], rng.random()))
        await asyncio.sleep(rng.expovariate(1 / 0.003))
        if rng.random() < 0.03:
            # It was resent on a connection that broke.
            self.spawn(self._bind(pod, leader, node))
        binding = self.spawn(self._bind(pod, leader, node))
        await asyncio.wait({binding}, timeout=SCHEDULER_TIMEOUT_S)
        if not binding.done():
            return "the extender did not answer in time"
        error = binding.exception()
        return f"{type(error).__name__}: {error}" if error is not None else ""

    async def _bind(self, pod: Pod, leader: Replica, node: str) -> None:
        slow = self.rng.random() < self.weather.lost
        await asyncio.sleep(self.rng.uniform(0, 6) if slow else self.rng.expovariate(1 / 0.001))
        try:
            await leader.bind(pod.parsed.namespace, pod.parsed.name, pod.uid, node)
        except EdgeshareError as error:
            self.log(f"replica {leader.number} does not bind {pod.parsed} ({pod.uid}): {error}")
            raise

    def run(self, until_s: float) -> None:
        """Lets time pass; raises what went wrong."""
        over = self.loop.create_future()
        self.loop.call_at(until_s, over.set_result, None)
        self.loop.run_until_complete(over)
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Ends all that still goes on."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()
