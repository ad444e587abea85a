"""What is asked of an API server, by those who ask."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgeshare.kube.calls import Calls
from tests.kit.apiserver.answering_server import Server
from tests.kit.apiserver.kubeconfig import kubeconfig


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server().running() as server:
        yield server


@pytest.fixture
async def calls(server: Server, tmp_path: Path) -> AsyncIterator[Calls]:
    calls = Calls(kubeconfig(tmp_path / "kubeconfig", {"server": server.url}))
    async with calls.open():
        yield calls
