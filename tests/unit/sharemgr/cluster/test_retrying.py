"""kube-scheduler is told to try again, also where it could not be told at first."""

import asyncio

import pytest

from edgeshare.errors import NotFound, Unavailable
from edgeshare.names import GPU_RELEASED
from sharemgr.cluster import retrying as module
from sharemgr.cluster.api import KubeApi
from sharemgr.cluster.assigner import Assigner
from sharemgr.cluster.books import AcceleratorNode
from sharemgr.cluster.ledger import Gpu, Inventory
from sharemgr.cluster.metrics import Metrics
from sharemgr.cluster.pods import parse_pod
from sharemgr.cluster.policies import POLICIES
from sharemgr.cluster.retrying import Retrying

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
    made.node_told("ADDED", AcceleratorNode(Inventory("n", (Gpu("g", "T4", 1000),))))
    return made


@pytest.mark.parametrize("trouble", [Unavailable("it does not answer"), NotFound("there is no Node n")])
async def test_what_could_not_be_told_is_told_at_the_next_news(
    assigner: Assigner, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PACE_S", 0)
    nodes, metrics = Nodes(trouble, trouble), Metrics()
    retrying = Retrying(assigner, nodes, metrics)
    running = asyncio.create_task(retrying.run())
    # The first is for whom another leader has turned down.
    assert await nodes.next_asked() == "n"
    for _ in range(2):
        retrying.news()
        assert await nodes.next_asked() == "n"
    retrying.news()
    # Told is told.
    assigner.node_told("MODIFIED", AcceleratorNode(Inventory("m", (Gpu("h", "T4", 1000),))))
    assert await nodes.next_asked() == "m"
    running.cancel()
    await asyncio.wait([running])
    (told,) = [each.value for each in metrics.retries.collect()[0].samples if each.name.endswith("_total")]
    assert told == 2
