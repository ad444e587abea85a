"""A simulated cluster around the real assigner: nodes with their kubelets and plugins, kube-scheduler, replicas that
lead one after the other, and users. What is true is kept here, apart from all that the assigner believes."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from edgeshare.contract.errors import EdgeshareError
from tests.kit.sim.cluster.simulated_api import ApiServer, Client, Pod, Weather, gpu_needs
from tests.kit.sim.cluster.simulated_node import SimulatedNode
from tests.kit.sim.cluster.simulated_replica import Replica
from tests.kit.sim.cluster.simulated_time import JumpingLoop, Log

SCHEDULER_TIMEOUT_S = 5.0
LEASE_S, RENEW_DEADLINE_S = 15.0, 10.0


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
        self.loop.set_exception_handler(self._went_wrong)
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
        """Does it then; what goes wrong in it fails the run."""
        self.loop.call_later(after_s, do, *what)

    def _went_wrong(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failure = self.failure or context.get("exception") or AssertionError(context["message"])

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
        told = [*found.nodes, *found.failed, *found.never]
        assert sorted(told) == sorted(names) or (self.keeps_choice and len(told) == len(found.nodes) == 1)
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
