"""One replica of the assigner in the simulated cluster."""

import asyncio
from typing import TYPE_CHECKING, Any

from edgeshare.contract.errors import Unavailable
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.binding import Binder
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.state.pods import SharePod
from tests.kit.sim.cluster.simulated_api import Client

if TYPE_CHECKING:
    from tests.kit.sim.cluster.simulated_cluster import World

BIND_TIMEOUT_S = 3.0
SETTLE_S = 5.0


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
            self.assigner.promises.lapse()
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
