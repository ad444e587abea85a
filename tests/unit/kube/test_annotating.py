"""Several pods are told of their assignments: one for which that fails keeps no other from it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deviceplugin import retry_loop
from deviceplugin.allocations.records import Records
from deviceplugin.allocations.store import Store
from deviceplugin.cluster.assignments import FAILURES_MAX, Annotating
from deviceplugin.devices.device_list import Devices
from deviceplugin.inject.cdi import Specs
from deviceplugin.inject.library import Library
from deviceplugin.live_config import Settings
from deviceplugin.node_events import NodeEvents
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.units.ledger import Allocation, Ledger, Owner
from edgeshare.contract.accelerator_kind import GPU
from edgeshare.contract.units import unit_id
from edgeshare.kube.kube import Kube
from tests.kit.apiserver.answering_server import HANG_UP, SAFETY_S, Server, answer
from tests.kit.apiserver.kubeconfig import kubeconfig
from tests.kit.processes.waiting import until_true

DONE, GONE, AWAY = (answer({"message": "said"}, status) for status in (200, 404, 500))


class Telling:
    """A node's pods p0, p1, … with an allocation each, and what tells them, each look of which but the first waits for
    a change."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.server = server
        self.said: asyncio.Queue[str] = asyncio.Queue()
        self._ledger, settings = Ledger(), Settings(None)
        specs = Specs(folder / "cdi", settings, Devices(), [self._ledger], NodeEvents())
        library = Library(folder / "hook", folder / "library.so")
        records = Records(folder / "records")
        store = Store(GPU, {GPU: self._ledger}, records, library, folder / "run", settings, specs)
        kube = Kube.from_kubeconfig(kubeconfig(folder / "kubeconfig", {"server": server.url}))
        self._pods = BoundPods(kube, "n")
        self._annotating = Annotating(kube, self._pods, [store])
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def add(self, number: int) -> None:
        """One more."""
        name = f"p{number}"
        containers = [{"name": "main", "resources": {"limits": {"edge/gpu-percent": "1"}}}]
        metadata = {"namespace": "ns", "name": name, "uid": name}
        self._ledger.put(
            Allocation(name, frozenset({unit_id("gpu", number)}), "", Owner("ns", name, "main", name)),
        )
        self._pods.told("ADDED", {"metadata": metadata, "spec": {"containers": containers}, "status": {}})

    def start(self) -> None:
        self._running = asyncio.create_task(self._annotating.run(self._stop))

    async def stop(self) -> None:
        """Ends it, which has not ended by itself."""
        assert self._running is not None
        assert not self._running.done()
        self._stop.set()
        await self._running

    async def until_said(self) -> str:
        """What the log has next: a look is over."""
        async with asyncio.timeout(SAFETY_S):
            return await self.said.get()

    async def until_asked(self, count: int) -> list[str]:
        """For which pods it asked, when it did so often."""
        await until_true(lambda: len(self.server.asked) >= count)
        return [each.path.rpartition("/")[2] for each in self.server.asked]


@pytest.fixture
async def telling(server: Server, tmp_path: Path) -> AsyncIterator[Telling]:
    telling = Telling(tmp_path, server)
    handler = logging.Handler()
    handler.emit = lambda record: telling.said.put_nowait(record.getMessage())  # type: ignore[method-assign]
    retry_loop.logger.addHandler(handler)
    yield telling
    retry_loop.logger.removeHandler(handler)
    await telling.stop()


async def test_one_for_which_it_fails_keeps_no_other_from_being_told_and_is_tried_again(telling: Telling) -> None:
    for number in range(5):
        telling.add(number)
    telling.server.answers = [DONE, AWAY, GONE, answer({"message": "not yours"}, 403), DONE]
    telling.start()
    assert "PATCH /api/v1/namespaces/ns/pods/p1: 500" in await telling.until_said()
    assert await telling.until_asked(5) == ["p0", "p1", "p2", "p3", "p4"]
    written = json.loads(telling.server.asked[4].body)["metadata"]["annotations"]
    assert written == {"edge/gpu-assignment": '{"main":["gpu"]}'}
    telling.server.answers = [DONE] * 6
    # A watch that tells of what was written has yet to come. Those that failed are last.
    telling.add(5)
    assert (await telling.until_asked(11))[5:] == ["p0", "p2", "p4", "p5", "p1", "p3"]


async def test_an_api_server_that_fails_for_many_is_left_alone_and_each_has_its_turn(telling: Telling) -> None:
    count = FAILURES_MAX + 3
    for number in range(count):
        telling.add(number)
    telling.server.answers = [AWAY] * FAILURES_MAX
    telling.start()
    await telling.until_said()
    asked = await telling.until_asked(FAILURES_MAX)
    assert asked == [f"p{number}" for number in range(FAILURES_MAX)]
    telling.server.answers = [DONE] * (count + 1)
    telling.add(count)
    later = [f"p{number}" for number in range(FAILURES_MAX, count + 1)]
    assert (await telling.until_asked(FAILURES_MAX + count + 1))[FAILURES_MAX:] == [*later, *asked]


async def test_one_that_is_not_answered_is_the_last_the_next_time(telling: Telling) -> None:
    for number in range(3):
        telling.add(number)
    telling.server.answers = [HANG_UP]
    telling.start()
    assert "cannot be asked" in await telling.until_said()
    assert await telling.until_asked(1) == ["p0"]
    telling.server.answers = [DONE] * 4
    telling.add(3)
    assert (await telling.until_asked(5))[1:] == ["p1", "p2", "p3", "p0"]
