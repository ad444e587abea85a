"""The cluster of nodes that exist by name alone, on which the assigner is measured."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.kube.kube import Kube
from tests.kit.manynodes import nodes, pods
from tests.kit.manynodes.api import api
from tests.kit.manynodes.bound import BoundPods
from tests.kit.manynodes.cluster import Cluster, cluster
from tests.kit.manynodes.plugins import Plugins

NODES = 20
PODS = 60
BOUND_S = 120


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Cluster]:
    """The first one on a machine takes minutes to build, which no test's time has room for."""
    with cluster(tmp_path) as cluster_of_names:
        yield cluster_of_names


async def test_accelerator_nodes_tell_of_the_pods_that_are_bound_and_of_no_others(made: Cluster) -> None:
    server = made.server
    pair = server.authority.issue("test", "test", group="system:masters")
    kube = Kube.from_kubeconfig(server.kubeconfig)
    async with api(server.url, server.authority.certificate, *pair) as calls, asyncio.TaskGroup() as group:

        async def allocated() -> set[str]:
            return {
                each["pod"]["uid"]
                for node in await calls.items(ACCELERATOR_NODES)
                for each in node["status"]["allocations"]
            }

        await calls.post_all(each for name in nodes.names(NODES) for each in nodes.objects(name))
        bound = BoundPods(kube)
        plugins = Plugins(kube, bound)
        bound.start()
        writing = group.create_task(plugins.run())
        await calls.post_all(pods.pods("some", PODS))
        made.start_scheduler(None)
        assert await bound.until(lambda there: there == PODS, BOUND_S)
        await plugins.until_written()
        assert await allocated() == bound.pods.keys()
        await calls.delete_all(pods.COLLECTION)
        assert await bound.until(lambda there: there == 0, BOUND_S)
        await plugins.until_written()
        assert not await allocated()
        bound.stop()
        writing.cancel()
