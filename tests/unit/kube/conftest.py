"""What is asked of an API server, by those who ask."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from answering_server import Server, kubeconfig

from edgeshare.kube.calls import Calls


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server().running() as server:
        yield server


@pytest.fixture
async def calls(server: Server, tmp_path: Path) -> AsyncIterator[Calls]:
    calls = Calls(kubeconfig(tmp_path / "kubeconfig", {"server": server.url}))
    async with calls.open():
        yield calls
