"""kube-scheduler is told to try again, also where it could not be told at first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from edgeshare.contract.errors import NotFound, Unavailable
from edgeshare.contract.names import GPU_RELEASED
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.metrics import Metrics
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.replica import retrying as module
from sharemgr.cluster.replica.api import KubeApi
from sharemgr.cluster.replica.retrying import Retrying
from sharemgr.cluster.state.books import AcceleratorNode
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import parse_pod

PATIENCE_S = 60


class Nodes(KubeApi):
    """Those of an API server, whose answers to the first requests are in trouble."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.asked: asyncio.Queue[str] = asyncio.Queue()

    async def annotate_node(self, name: str, annotations: dict[str, str]) -> None:
        assert set(annotations) == {GPU_RELEASED}
        self.asked.put_nowait(name)
        if self.troubles:
            raise self.troubles.pop(0)

    async def next_asked(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await self.asked.get()


@pytest.fixture
def assigner() -> Assigner:
    """One that has turned a pod down, which would fit node n since."""
    made = Assigner(POLICIES["usable"])
    limits = {"resources": {"limits": {"edge/gpu-percent": "60"}}, "name": "main"}
    waiting = {"metadata": {"uid": "p", "namespace": "d", "name": "p"}, "spec": {"containers": [limits]}}
    assert made.filter(parse_pod(waiting), ["n"]).nodes == []
    made.node_told("ADDED", AcceleratorNode(Inventory("n", (Device("g", "T4", 1000),))))
    return made


@asynccontextmanager
async def retrying(assigner: Assigner, nodes: Nodes) -> AsyncIterator[tuple[Retrying, Metrics]]:
    """While it runs; it has told of the node n at its beginning, or tried to."""
    metrics = Metrics()
    made = Retrying(assigner, nodes, metrics)
    running = asyncio.create_task(made.run())
    assert await nodes.next_asked() == "n"
    yield made, metrics
    running.cancel()
    await asyncio.wait([running])


@pytest.fixture(autouse=True)
def pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACE_S", 0)


def other_node_told(assigner: Assigner) -> None:
    assigner.node_told("MODIFIED", AcceleratorNode(Inventory("m", (Device("h", "T4", 1000),))))


@pytest.mark.parametrize("trouble", [Unavailable("it does not answer"), NotFound("there is no Node n")])
async def test_what_could_not_be_told_is_told_at_the_next_news(
    assigner: Assigner, trouble: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = Nodes(trouble, trouble)
    # The first is for whom another leader has turned down.
    async with retrying(assigner, nodes) as (made, metrics):
        for _ in range(2):
            made.news()
            assert await nodes.next_asked() == "n"
        made.news()
        # Told is told.
        other_node_told(assigner)
        assert await nodes.next_asked() == "m"
    (told,) = [each.value for each in metrics.retries.collect()[0].samples if each.name.endswith("_total")]
    assert told == 2
    assert len(caplog.messages) == 1, "the log has each trouble once"


async def test_another_node_is_annotated_in_place_of_one_that_is_gone(assigner: Assigner) -> None:
    other_node_told(assigner)
    nodes = Nodes(NotFound("there is no Node n"))
    async with retrying(assigner, nodes) as (made, _):
        assert await nodes.next_asked() == "m"
        made.news()
        # Both have changed since it was last asked.
        assert await nodes.next_asked() == "n"
    assert nodes.asked.empty()


async def test_a_node_that_is_gone_from_the_books_is_told_of_no_more(assigner: Assigner) -> None:
    nodes = Nodes(Unavailable("it does not answer"))
    async with retrying(assigner, nodes) as (made, _):
        assigner.node_told("DELETED", AcceleratorNode(Inventory("n", ())))
        made.news()
        for _ in range(10):  # turns of the event loop, of which it needs one or two
            await asyncio.sleep(0)
        assert nodes.asked.empty()
        other_node_told(assigner)
        made.news()
        assert await nodes.next_asked() == "m"
