"""A real API server that knows AcceleratorNodes, certificates, and replicas of the assigner as real processes."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.kit.apiserver.api_server import ApiServer, api_server, done
from tests.kit.apiserver.certificates import Authority
from tests.kit.assigner.replicas import Replicas

CRD = Path(__file__).parents[2] / "deploy/chart/crds/acceleratornodes.yaml"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API server."""
    with api_server(tmp_path_factory.mktemp("api-server")) as server:
        # A controller's work: without it no pod is admitted.
        done(server.kubectl("create", "serviceaccount", "default"))
        server.define(CRD)
        yield server


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs for server and clients."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def own_name(request: pytest.FixtureRequest) -> str:
    """A name for an object, which no other test has."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[-60:].strip("-")


@pytest.fixture
def lease(own_name: str) -> dict[str, str]:
    """Where a Lease is that no other test has."""
    return {"namespace": "default", "name": own_name}


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    """Starts replicas; those that still run are killed at the end."""
    async with AsyncExitStack() as stack:
        yield Replicas(tmp_path, stack)
