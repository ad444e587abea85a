"""A pod that two schedulers bind, at a real API server: it is where the first bound it, and the other, which goes
through the assigner, is told so; of what the assigner kept for it nothing stays."""

import asyncio
import json
from typing import Any

from edgeshare.contract.names import GPU_PERCENT
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.assigner.replicas import PROBE_S, SAFETY_S, Replica, Replicas

OURS, OTHERS = "two-schedulers", "node-a"
"""The node that the assigner is asked about, and the one that the other scheduler takes."""


def accelerator_node(name: str) -> dict[str, Any]:
    """With one GPU."""
    device = {"id": f"GPU-{name}", "kind": "gpu", "model": "T4", "memoryMiB": 1000, "healthy": True}
    status = {"deviceCount": 1, "healthyCount": 1, "allocationCount": 0, "devices": [device], "allocations": []}
    kind = {"apiVersion": "share.edge/v1alpha1", "kind": "AcceleratorNode"}
    return {**kind, "metadata": {"name": name}, "status": status}


def asking(name: str, percent: int) -> dict[str, Any]:
    """A pod."""
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU_PERCENT: str(percent)}}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


async def fits(replica: Replica, pod: dict[str, Any]) -> bool:
    """Whether a pod is sent to our node."""
    _, told = await replica.ask("filter", {"Pod": pod, "NodeNames": [OURS]})
    return bool(told["NodeNames"] == [OURS])


async def until_fits(replica: Replica, pod: dict[str, Any]) -> None:
    async with asyncio.timeout(SAFETY_S):
        while not await fits(replica, pod):  # noqa: ASYNC110 - it hears of a change, and tells nobody
            await asyncio.sleep(PROBE_S)


async def test_the_first_has_it_the_other_is_told_and_nothing_stays_reserved(
    replicas: Replicas, server: ApiServer
) -> None:
    nodes = [accelerator_node(name) for name in (OURS, OTHERS)]
    made = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, asking("of-two", 60)]})
    done(await asyncio.to_thread(server.kubectl, "create", "--filename=-", stdin=made))
    pod = json.loads(done(await asyncio.to_thread(server.kubectl, "get", "pod/of-two", "--output=json")).stdout)
    replica = await replicas.start(kubeconfig=str(server.kubeconfig), choice="filter")
    await replica.until_ready()
    await until_fits(replica, pod)
    assert not await fits(replica, asking("large", 50))

    done(await asyncio.to_thread(server.bind, "of-two", {}))
    where = {"PodName": "of-two", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": OURS}
    status, told = await replica.ask("bind", where)

    assert status == 200
    assert f"bound to node {OTHERS}" in told["Error"]
    bound = json.loads(done(await asyncio.to_thread(server.kubectl, "get", "pod/of-two", "--output=json")).stdout)
    assert bound["spec"]["nodeName"] == OTHERS
    assert "annotations" not in bound["metadata"]
    await until_fits(replica, asking("whole", 100))
    done(await asyncio.to_thread(server.kubectl, "delete", "--force", "--grace-period=0", "--filename=-", stdin=made))
