"""The manager goes every way of an allocation that its table has, and no other: each call, restart and observation is
tried from each state."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic_ns

from edgeshare.contract.devices import Device
from edgeshare.contract.errors import EdgeshareError
from edgeshare.contract.lifetime import ABSENT, AT_THE_MANAGER, State
from edgeshare.v1.allocations_pb2 import Allocation, UpdateAllocationRequest
from sharemgr.node.config import Config
from sharemgr.node.events import Events
from sharemgr.node.machine.observer import Observation
from sharemgr.node.machine.store import Store
from sharemgr.node.node import Node
from sharemgr.node.sockets.loop import Loop

DEVICES = (Device("GPU-a", 0, "Simulated", 8192), Device("GPU-b", 1, "Simulated", 8192))


def half(device_id: str) -> Allocation:
    return Allocation(id="half", device_ids=[device_id], request_percent=50)


class Bed:
    """A manager's node in a folder, with GPU-a there or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._devices = DEVICES
        self.node = self._begun()

    def _begun(self) -> Node:
        clients = self._folder / "clients"
        clients.mkdir(exist_ok=True)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        node = Node(Config(), self._devices, clients, Store(self._folder), Events("", None), loop)
        node.restore()
        return node

    def state(self) -> State:
        return self.node._state("half")

    async def add(self) -> None:
        await self.node.add(half("GPU-a"))

    async def add_on_another_device(self) -> None:
        await self.node.add(half("GPU-b"))

    async def hold(self) -> None:
        self.node.hold(half("GPU-b"))

    async def let_go(self) -> None:
        self.node.let_go("half")

    async def update(self) -> None:
        await self.node.update(UpdateAllocationRequest(id="half", limit_percent=60))

    async def remove(self) -> None:
        await self.node.remove("half")

    async def restart(self) -> None:
        self.node.close()
        self.node = self._begun()

    async def restart_without_its_device(self) -> None:
        self._devices = DEVICES[1:]
        await self.restart()

    async def see_its_device(self) -> None:
        self._devices = DEVICES
        self.node.observe(Observation(monotonic_ns(), tuple(replace(each) for each in DEVICES), {}, {}, {}))


Call = Callable[[Bed], Awaitable[None]]
CALLS: tuple[Call, ...] = (
    Bed.add,
    Bed.add_on_another_device,
    Bed.hold,
    Bed.let_go,
    Bed.update,
    Bed.remove,
    Bed.restart,
    Bed.restart_without_its_device,
    Bed.see_its_device,
)


async def after(calls: tuple[Call, ...]) -> State:
    """The state after these calls, the last of which may be refused."""
    with TemporaryDirectory() as folder:
        bed = Bed(Path(folder))
        try:
            for call in calls[:-1]:
                await call(bed)
            with contextlib.suppress(EdgeshareError):
                await calls[-1](bed)
            listed = [each.id for each in bed.node.allocations()]
            assert listed == ([] if bed.state() is ABSENT else ["half"]), calls
            return bed.state()
        finally:
            bed.node.close()


async def ways() -> set[tuple[State, State]]:
    """Every change of state that a call makes, from each state that calls reach."""
    found: set[tuple[State, State]] = set()
    to: dict[State, tuple[Call, ...]] = {ABSENT: ()}
    untried = [ABSENT]
    while untried:
        before = untried.pop()
        for call in CALLS:
            state = await after((*to[before], call))
            if state is not before:
                found.add((before, state))
            if state not in to:
                to[state] = (*to[before], call)
                untried.append(state)
    return found


def test_every_way_of_the_table_is_gone_and_no_other() -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(ways()) == set(AT_THE_MANAGER)


def test_one_that_is_kept_for_a_missing_device_cannot_be_held_as_well() -> None:
    calls = (Bed.add, Bed.restart_without_its_device, Bed.hold)
    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(after(calls)) is State.STRANDED
