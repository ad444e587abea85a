"""A simulated API server and the ways to it: requests that are lost, late or refused, watches that are behind, break
off and list anew. All in simulated time, and decided by one seeded generator: a seed always gives the same run."""

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import GPU_ASSIGNMENT
from edgeshare.kube.messages import Conflicting, Refused
from sharemgr.cluster.state.pods import SharePod, parse_pod
from tests.kit.sim.cluster.simulated_time import Log

LATEST_S = 60.0
"""A request is carried out within so long, or never: kube-apiserver's --request-timeout."""


@dataclass(slots=True)
class Weather:
    """How often each thing goes wrong; all 0: never."""

    lost: float = 0.0
    """The answer to a Binding, written or not."""
    late: float = 0.0
    """A Binding is written long after its answer was lost."""
    refused: float = 0.0
    touched: float = 0.0
    """The pod is changed while its Binding is under way."""
    slow: float = 0.0
    """A read takes seconds; its answer is of when it was asked."""
    behind: float = 0.0
    """A watch, by seconds."""
    broken: float = 0.0
    """A watch; half of the time it cannot go on where it was and lists anew."""
    deleted: float = 0.0
    """A pod while its Binding is in doubt."""
    dropped: float = 0.0
    """Of the Bindings whose answers are lost: those that are surely not written either."""
    told: float = 0.0
    """kube-scheduler writes at a pod why it is not bound."""


class Collection:
    """Objects of one kind, and all that ever happened to them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.now: dict[str, Any] = {}
        self.history: list[tuple[float, str, Any]] = []
        self._waiting: list[asyncio.Future[None]] = []

    def tell(self, kind: str, key: str, thing: Any) -> None:
        """An object came, changed or went."""
        if kind == "DELETED":
            self.now.pop(key, None)
        else:
            self.now[key] = thing
        self.history.append((self._loop.time(), kind, thing))
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def more_than(self, count: int) -> None:
        """Returns when so much has happened."""
        while len(self.history) <= count:
            waiting = self._loop.create_future()
            self._waiting.append(waiting)
            await waiting

    async def follow(
        self,
        rng: random.Random,
        weather: Weather,
        listed: Callable[[list[Any]], None],
        changed: Callable[[str, Any], None],
        began: Callable[[], None] = lambda: None,
    ) -> None:
        """As edgeshare.kube.following does it: a list, then each change, in order."""
        while True:
            things, position = list(self.now.values()), len(self.history)
            began()
            await asyncio.sleep(rng.expovariate(1 / 0.02) + (rng.random() < weather.slow) * rng.uniform(0, 5))
            listed(things)
            while True:
                await self.more_than(position)
                happened_s, kind, thing = self.history[position]
                if rng.random() < weather.broken:
                    await asyncio.sleep(rng.uniform(0.5, 30))
                    if rng.random() < 0.5:
                        break
                lag_s = rng.uniform(0.5, 6) if rng.random() < weather.behind else rng.expovariate(1 / 0.005)
                left_s = happened_s + lag_s - self._loop.time()
                if left_s > 0:
                    await asyncio.sleep(left_s)
                changed(kind, thing)
                position += 1


@dataclass(slots=True)
class Pod:
    """One, as the API server has it."""

    json: dict[str, Any]
    parsed: SharePod
    before: SharePod
    """As it was before its last change."""
    is_forced: bool = False
    """It was deleted without waiting for the kubelet."""

    @property
    def uid(self) -> str:
        return self.parsed.uid

    @property
    def is_leaving(self) -> bool:
        """Its deletion has begun."""
        return "deletionTimestamp" in self.json["metadata"]


@dataclass
class ApiServer:
    """Pods by name, AcceleratorNodes, and both as those see them who follow them."""

    loop: asyncio.AbstractEventLoop
    log: Log
    on_bound: Callable[[Pod, "Client"], None] = lambda pod, client: None
    on_deleting: Callable[[Pod], None] = lambda pod: None
    pods: dict[str, Pod] = field(default_factory=dict)
    """By namespace/name."""
    version: int = 0

    def __post_init__(self) -> None:
        self.bound = Collection(self.loop)
        self.nodes = Collection(self.loop)
        self.reading = 0
        """The number of the last replica that has listed the pods as a leader."""

    def pod(self, uid: str) -> Pod | None:
        return next((pod for pod in self.pods.values() if pod.uid == uid), None)

    def create(self, body: dict[str, Any]) -> Pod:
        name = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
        assert name not in self.pods
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        parsed = parse_pod(body)
        pod = self.pods[name] = Pod(body, parsed, parsed)
        self.log(f"pod {name} is created: {parsed.uid}, {parsed.request.asks or parsed.fault}")
        return pod

    def changed(self, pod: Pod, kind: str = "MODIFIED") -> None:
        """Something was written at it."""
        self.version += 1
        pod.json["metadata"]["resourceVersion"] = str(self.version)
        pod.before, pod.parsed = pod.parsed, parse_pod(pod.json)
        if pod.parsed.node:
            self.bound.tell(kind, pod.uid, pod.parsed)

    def end(self, pod: Pod, phase: str, why: str) -> None:
        if self.pods.get(str(pod.parsed)) is pod:
            self.log(f"pod {pod.parsed} ({pod.uid}) is {phase}: {why}")
            pod.json["status"] = {"phase": phase}
            self.changed(pod)

    def delete(self, pod: Pod, by_force: bool = False) -> None:
        """A user deletes it: gone at once where no kubelet has it, or by force; else when its kubelet says so."""
        if self.pods.get(str(pod.parsed)) is not pod or pod.is_leaving:
            return
        pod.is_forced = by_force
        if pod.parsed.node and not by_force:
            self.log(f"deletion of pod {pod.parsed} ({pod.uid}) begins")
            pod.json["metadata"]["deletionTimestamp"] = "now"
            self.changed(pod)
        else:
            self.gone(pod)
        if pod.parsed.node:
            self.on_deleting(pod)

    def gone(self, pod: Pod) -> None:
        if self.pods.get(str(pod.parsed)) is pod:
            self.log(f"pod {pod.parsed} ({pod.uid}) is gone")
            del self.pods[str(pod.parsed)]
            if pod.parsed.node:
                self.changed(pod, "DELETED")

    def bind(self, asked: SharePod, client: "Client") -> Exception | None:
        """Carries a Binding out, or says why not."""
        pod = self.pods.get(str(asked))
        what = f"Binding of pod {asked} ({asked.uid}, {asked.version}) to {asked.node} by replica {client.number}"
        if pod is None or pod.uid != asked.uid:
            self.log(f"{what}: it is another pod, or none")
            return Conflicting("another pod, or none")
        # No version is no precondition.
        if asked.version not in ("", pod.parsed.version) or pod.parsed.node or pod.is_leaving:
            self.log(f"{what}: conflict, it is {pod.parsed.version} on {pod.parsed.node or 'no node'}")
            return Conflicting("another version, or bound")
        pod.json["spec"]["nodeName"] = asked.node
        if asked.assignment is not None:
            pod.json["metadata"]["annotations"][GPU_ASSIGNMENT] = asked.assignment
        self.log(f"{what}: written, {asked.assignment}")
        self.changed(pod, "ADDED")
        self.on_bound(pod, client)
        return None


class Client:
    """binding.Api, of one replica, over a network that loses things."""

    def __init__(self, number: int, server: ApiServer, rng: random.Random, weather: Weather) -> None:
        self.number = number
        self._server = server
        self._rng = rng
        self._weather = weather
        self._loop = server.loop

    async def bind(self, pod: SharePod) -> None:
        """A request that was sent goes its way, whether anybody still waits for the answer or not."""
        rng, weather, server = self._rng, self._weather, self._server
        answer: asyncio.Future[Exception | None] = self._loop.create_future()
        there_s = rng.expovariate(1 / 0.004)

        def carried_out(answers: bool) -> None:
            error = server.bind(pod, self)
            if answers:
                self._loop.call_later(rng.expovariate(1 / 0.002), answered, error)

        def answered(error: Exception | None) -> None:
            if not answer.done():
                answer.set_result(error)

        there = server.pods.get(str(pod))
        if there is not None and rng.random() < weather.touched:
            self._loop.call_later(rng.uniform(0, 0.02), self._touch, there)
        lot = rng.random()
        if lot < weather.refused:
            self._loop.call_later(there_s, answered, Refused("403 or 429"))
        elif lot < weather.refused + weather.late + weather.lost:
            is_late = lot < weather.refused + weather.late
            if is_late or rng.random() < 0.6 * (1 - weather.dropped):
                lands_s = rng.choice([rng.uniform(0, 4), rng.uniform(0, LATEST_S)]) if is_late else there_s
                self._loop.call_later(lands_s, carried_out, False)
            if rng.random() < 0.6:
                # Otherwise there never is an answer.
                self._loop.call_later(rng.uniform(0, 2.9), answered, Unavailable("503, or the connection is gone"))
            if there is not None and rng.random() < weather.deleted:
                self._loop.call_later(rng.uniform(0, 10), server.delete, there)
            server.log(f"pod {pod} ({pod.uid}): the answer to its Binding is lost")
        else:
            self._loop.call_later(there_s, carried_out, True)
        error = await answer
        if error is not None:
            raise error

    def _touch(self, pod: Pod) -> None:
        if self._server.pods.get(str(pod.parsed)) is pod and not pod.parsed.node:
            self._server.log(f"pod {pod.parsed} ({pod.uid}) is changed by somebody")
            self._server.changed(pod)

    async def read(self, namespace: str, name: str) -> SharePod | None:
        """The pod as it was when the API server read it."""
        rng, weather = self._rng, self._weather
        await asyncio.sleep(rng.expovariate(1 / 0.002))
        if rng.random() < weather.lost / 2:
            raise Unavailable("the API server cannot be asked")
        pod = self._server.pods.get(f"{namespace}/{name}")
        found = pod.parsed if pod is not None else None
        await asyncio.sleep(rng.uniform(0, 5) if rng.random() < weather.slow else rng.expovariate(1 / 0.002))
        return found


def gpu_needs(pod: dict[str, Any], totals_mib: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Units and MiB that a pod has of each GPU by its annotation, at its most: of plain init containers one runs at a
    time, beside those that were started before it and stay."""
    assignment = json.loads(pod["metadata"]["annotations"][GPU_ASSIGNMENT])
    staying: dict[str, tuple[int, int]] = {}
    most: dict[str, tuple[int, int]] = {}
    spec = pod["spec"]
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        limits = container["resources"]["limits"]
        percent = int(limits["edge/gpu-percent"])
        devices = assignment[container["name"]]
        assert len(devices) == len(set(devices)) == max(1, percent // 100)
        for gpu in devices:
            units = min(percent, 100)
            mib = int(limits.get("edge/gpu-memory-mib", totals_mib[gpu] * units // 100))
            before, so_far = staying.get(gpu, (0, 0)), most.get(gpu, (0, 0))
            now = (before[0] + units, before[1] + mib)
            most[gpu] = (max(so_far[0], now[0]), max(so_far[1], now[1]))
            if container in spec["containers"] or container.get("restartPolicy") == "Always":
                staying[gpu] = now
    return most
