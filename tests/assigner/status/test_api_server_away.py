"""What is told of a cluster whose API server is away: nodes go on telling, to whom they told before, and since when
nobody knows of new ones is said."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeshare.v1.cluster_pb2 import ClusterState
from tests.kit.apiserver.api_server import READY_S, STOP_S, ApiServer, api_server
from tests.kit.assigner.replicas import Replicas
from tests.kit.assigner.world import ANY, World, complete, first, node

CRD = Path(__file__).parents[3] / "deploy/chart/crds/acceleratornodes.yaml"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One that no other tests have: it is ended, and begins again."""
    with api_server(tmp_path_factory.mktemp("api-server")) as server:
        server.define(CRD)
        yield server


@pytest.fixture
def own_server(ended: ApiServer) -> ApiServer:
    """The same, which runs before each test."""
    ended.daemons.start("api-server", ended.plane.api_server())
    ended.daemons.wait_until("api-server", ended.plane.api_server_ready, READY_S)
    return ended


def is_told(each: dict[str, Any]) -> bool:
    """Whether there are nodes in a picture, and what it says of them is of now."""
    nodes = each["picture"]["nodes"]
    return bool(nodes) and not any(node["stale"] for node in nodes)


async def test_while_the_api_server_is_away_use_is_told_on_and_since_when_nodes_may_be_missing(
    own_server: ApiServer, tmp_path: Path, replicas: Replicas
) -> None:
    world = World(own_server, tmp_path / "certificates", "away")
    with node(world, "n1", [("away", "web")]):
        asked = await world.serve(replicas, page=ANY)
        known, stranger = world.of_all("known"), world.of_all("stranger")
        await asked.until(known, lambda state: complete("n1")(state) and not state.stale_since_ns)
        own_server.daemons.stop("api-server", STOP_S)

        def told_since(state: ClusterState) -> bool:
            return complete("n1")(state) and all(each.told_at_ns > state.stale_since_ns > 0 for each in state.nodes)

        away = await asked.until(known, told_since)
        assert away.stale_since_ns < away.at_ns
        (told,) = away.nodes
        assert told.status.allocations[0].allocation.owner.pod == "web"
        code, why = await asked.refused(stranger)
        assert (code, "the API server cannot be asked" in why) == ("UNAVAILABLE", True)
        async with asked.page("", stranger) as answer:
            assert (answer.status, "the API server cannot be asked" in await answer.text()) == (503, True)
        own_server.daemons.start("api-server", own_server.plane.api_server())
        own_server.daemons.wait_until("api-server", own_server.plane.api_server_ready, READY_S)
        await asked.until(known, lambda state: complete("n1")(state) and not state.stale_since_ns)
        assert complete("n1")(await asked.get(stranger))


async def test_while_the_api_server_is_away_the_page_says_since_when_and_no_more_when_it_is_back(
    own_server: ApiServer, tmp_path: Path, replicas: Replicas
) -> None:
    world = World(own_server, tmp_path / "certificates", "page")
    with node(world, "n1", [("page", "web")]):
        asked = await world.serve(replicas, page=ANY)
        token = world.of_all("known")
        await asked.until(token, complete("n1"))
        async with asked.followed(token) as told:
            await first(told, lambda each: is_told(each) and not each["picture"]["notice"])
            own_server.daemons.stop("api-server", STOP_S)
            away = await first(told, lambda each: is_told(each) and bool(each["picture"]["notice"]))
            said = "the API server does not answer the service, stale since 2"
            assert away["picture"]["notice"].startswith(said)
            # Nodes tell on.
            (shown,) = away["picture"]["nodes"]
            assert (away["stale"], len(shown["devices"][0]["shares"])) == ("", 1)
            own_server.daemons.start("api-server", own_server.plane.api_server())
            own_server.daemons.wait_until("api-server", own_server.plane.api_server_ready, READY_S)
            await first(told, lambda each: not each["picture"]["notice"])
