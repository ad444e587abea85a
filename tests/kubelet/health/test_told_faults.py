"""Who is told that a device is not healthy: events of its node, the manager's status, a metric."""

import asyncio
import signal

import grpc

from edgeshare.v1.status_pb2 import DeviceStatus, GetNodeStatusRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.processes.waiting import until_true

SAFETY_S = 30


async def test_an_event_names_cause_source_time_and_cure_once(in_cluster: Node, api: ApiServer) -> None:
    in_cluster.machine.inject_xid(1, 62)
    await until_true(lambda: api.events)
    await in_cluster.kubelet.until(healthy=100)
    in_cluster.machine.reset(1)
    await in_cluster.kubelet.until(healthy=200)
    await until_true(lambda: len(api.events) == 2)
    first, second = api.events
    assert (first["type"], first["reason"]) == ("Warning", "GPUUnhealthy")
    assert first["message"].startswith(f"GPU {UUIDS[1]} is not healthy: XID 62 (driver-event, since 20")
    assert first["message"].endswith("; healthy again after a reset of the GPU or a reboot")
    assert (second["type"], second["reason"]) == ("Normal", "GPUHealthy")
    assert second["message"] == f"GPU {UUIDS[1]} is healthy again"


async def test_a_known_fault_is_no_new_event_after_a_restart(in_cluster: Node, api: ApiServer) -> None:
    in_cluster.machine.inject_xid(1, 62)
    await until_true(lambda: api.events)
    await in_cluster.stop_plugin(signal.SIGTERM)
    await in_cluster.start_plugin(**in_cluster.with_api)
    await in_cluster.kubelet.until(registrations=2, healthy=100)
    in_cluster.machine.inject_xid(0, 62)
    await until_true(lambda: len(api.events) == 2)
    assert UUIDS[0] in api.events[1]["message"]


async def test_an_event_of_health_that_cannot_be_written_is_written_later(in_cluster: Node, api: ApiServer) -> None:
    api.broken = True
    in_cluster.machine.inject_xid(1, 62)
    await in_cluster.kubelet.until(healthy=100)
    await in_cluster.until_said("the node is not told of its GPUs")
    in_cluster.machine.reset(1)
    await in_cluster.kubelet.until(healthy=200)
    assert api.events == []
    api.broken = False
    await until_true(lambda: len(api.events) == 2)
    assert [event["reason"] for event in api.events] == ["GPUUnhealthy", "GPUHealthy"]


async def told_by_the_manager(node: Node, index: int) -> DeviceStatus:
    """How the manager's status says that a GPU is."""
    async with grpc.aio.insecure_channel(f"unix:{node.runtime_dir / 'status.sock'}") as channel:
        answer = await ShareStatusStub(channel).GetNodeStatus(GetNodeStatusRequest(), timeout=SAFETY_S)
    return next(device for device in answer.devices if device.id == UUIDS[index])


async def test_the_managers_status_says_of_a_device_what_the_plugin_knows(ready: Node) -> None:
    ready.machine.inject_xid(1, 62)
    async with asyncio.timeout(SAFETY_S):
        while "since" not in (ill := await told_by_the_manager(ready, 1)).cause:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert (ill.healthy, ill.cause.partition(", since")[0]) == (False, "XID 62 (driver-event")
    # By itself the manager knows of no reset.
    ready.machine.reset(1)
    async with asyncio.timeout(SAFETY_S):
        while not (await told_by_the_manager(ready, 1)).healthy:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_metric_says_which_device_is_not_healthy_why_and_since_when(node: Node) -> None:
    await node.start_plugin(metrics_address="127.0.0.1:0")
    await node.kubelet.until(healthy=200)
    node.machine.inject_xid(1, 62)
    await node.kubelet.until(healthy=100)
    _, text = await node.page("/metrics")
    (line,) = [line for line in text.splitlines() if line.startswith("edgeshare_deviceplugin_device_unhealthy_since")]
    assert f'device="{UUIDS[1]}",reason="Xid",source="driver-event"' in line
