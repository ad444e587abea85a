"""The closed loop: pods that the assigner is asked and told of, one after the other."""

import asyncio
from collections import deque
from collections.abc import Sequence
from enum import IntEnum

from bench.assigner.api_server import PODS, ApiServer
from bench.assigner.objects import NAMESPACE, Pod, Stage, accelerators
from bench.assigner.scheduler import Scheduler
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import ACCELERATOR_NODES

SEEN = 420
"""Nodes of 1,000 that kube-scheduler looks at for a pod where nothing is set; for the next one, those that follow."""

LATER = {Stage.SCHEDULED: 2, Stage.STARTED: 4, Stage.READY: 200, Stage.ENDING: 2}
"""How many pods are told of each stage before the first of them is told of the next."""


class Phase(IntEnum):
    """What pods go through: all that the phase before has, and more."""

    FILTERED = 0
    BOUND = 1
    """Bound, and no watch tells of it."""
    TOLD = 2
    """ADDED, MODIFIED three times, DELETED, and half a change of an AcceleratorNode."""


class Loop:
    """A cluster, as the assigner sees it."""

    def __init__(self, server: ApiServer, scheduler: Scheduler, names: Sequence[str]) -> None:
        self._server = server
        self._scheduler = scheduler
        self._names = names
        self._first = 0
        self._listed: dict[str, dict[str, Pod]] = {name: {} for name in names}
        """By node: the pods that its plugin lists."""
        self._changed: dict[str, None] = {}
        """The nodes of which that was not told yet."""
        self._told: dict[Stage, deque[Pod]] = {stage: deque() for stage in Stage}
        self.refused = 0
        """Bindings that were asked for in vain: the filter of the next pod overtakes them, and may take their room."""

    async def run(self, pods: Sequence[Pod], phase: Phase) -> None:
        """Filters them one after the other; each is bound beside the next one's filter."""
        binds = []
        for number, pod in enumerate(pods):
            node = await self._filter(pod)
            if phase is not Phase.FILTERED:
                binds.append(asyncio.create_task(self._bind(pod, node, phase)))
            if phase is Phase.TOLD:
                await self._tell_news(number)
        await asyncio.gather(*binds)
        if phase is Phase.BOUND:
            for pod in pods:
                for kind in ("ADDED", "DELETED"):
                    await self._server.tell(PODS, kind, pod.object(self._server.next_version()))

    async def _filter(self, pod: Pod, tried: str = "") -> str:
        """The node that the assigner chooses. Raises Unavailable where there is none. Of a node that was ``tried`` in
        vain its Binding may be in doubt, as its answer came too late: then it can go to no other."""
        seen = [self._names[(self._first + place) % len(self._names)] for place in range(min(SEEN, len(self._names)))]
        self._first += len(seen)
        if tried and tried not in seen:
            seen.append(tried)
        answer = await self._scheduler.ask("filter", {"Pod": pod.asked(1), "Nodes": None, "NodeNames": seen})
        if len(answer["NodeNames"]) != 1:
            raise Unavailable(f"the assigner finds no node for pod {pod.name}: {str(answer)[:300]}")
        return str(answer["NodeNames"][0])

    async def _bind(self, pod: Pod, node: str, phase: Phase) -> None:
        self._server.waiting[pod.name] = pod
        asked = {"PodName": pod.name, "PodNamespace": NAMESPACE, "PodUID": pod.uid}
        while (await self._scheduler.ask("bind", {**asked, "Node": node}))["Error"]:
            self.refused += 1
            node = await self._filter(pod, node)
        if phase is Phase.TOLD:
            await self._tell(pod, Stage.SCHEDULED)

    async def _tell_news(self, number: int) -> None:
        """What goes on meanwhile: as much for each pod as happens to one."""
        for stage, later in LATER.items():
            if len(self._told[stage]) > later:
                await self._tell(self._told[stage].popleft(), Stage(stage + 1))
        if self._changed and number % 2:
            name = next(iter(self._changed))
            del self._changed[name]
            told = accelerators(name, self._server.next_version(), self._listed[name].values())
            await self._server.tell(ACCELERATOR_NODES, "MODIFIED", told)

    async def _tell(self, pod: Pod, stage: Stage) -> None:
        pod.stage = stage
        if stage is Stage.STARTED:
            self._listed[pod.node][pod.uid] = pod
            self._changed[pod.node] = None
        elif stage is Stage.GONE and self._listed[pod.node].pop(pod.uid, None) is not None:
            self._changed[pod.node] = None
        kind = {Stage.SCHEDULED: "ADDED", Stage.GONE: "DELETED"}.get(stage, "MODIFIED")
        if stage is not Stage.GONE:
            self._told[stage].append(pod)
        await self._server.tell(PODS, kind, pod.object(self._server.next_version()))
