"""Nodes for the tests of this folder."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.apiserver.serving import serving
from tests.kit.kubelet.node_under_test import Node, node_at
from tests.kit.processes.waiting import until_true


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder with a path that leaves room for a socket's name."""
    path = Path(tempfile.mkdtemp(prefix="edgeshare-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def node(root: Path) -> AsyncIterator[Node]:
    """A node with a kubelet; no manager and no plugin yet."""
    async with node_at(root) as node:
        yield node


@pytest.fixture
async def ready(node: Node) -> Node:
    """The same with a manager, and a plugin that is registered."""
    await node.start_manager()
    await node.start_plugin()
    await node.kubelet.until(healthy=200)
    return node


@pytest.fixture
def api(root: Path) -> Iterator[ApiServer]:
    """An API server that knows node n1; its kubeconfig is root/kubeconfig."""
    with serving(root) as (server, _):
        server.nodes["n1"] = {"metadata": {"name": "n1", "uid": "uid-of-n1"}, "status": {"capacity": {"cpu": "2"}}}
        yield server


@pytest.fixture
async def in_cluster(node: Node, api: ApiServer) -> Node:
    """``ready``, with the API server, whose pods the plugin knows."""
    await node.start_manager()
    await node.start_plugin(**node.with_api)
    await node.kubelet.until(healthy=200)
    await until_true(api.all_told)
    return node
