"""A driver whose calls do not come back holds up neither the kubelet nor the end of the parts."""

import signal
import time

from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import Pod
from tests.kit.processes.waiting import until_true

ENDS_WITHIN_S = 10  # a kubelet gives 30
SAID = "has not answered for"


async def start_plugin(node: Node) -> None:
    await node.start_plugin(**node.with_api, metrics_address="127.0.0.1:0")


async def reasons(api: ApiServer) -> list[str]:
    """Of the events, once there is one."""
    await until_true(lambda: api.events)
    return [event["reason"] for event in api.events]


async def test_while_it_is_silent_no_device_is_given_out_and_all_calls_and_signals_are_answered(
    node: Node, api: ApiServer
) -> None:
    await node.start_manager()
    await start_plugin(node)
    await node.kubelet.until(healthy=200)
    pod = Pod("before", {"main": 30})
    api.put_pod(pod.name, pod.uid, {"main": {"edge/gpu-percent": "30"}}, {}, {})
    await node.kubelet.admit(pod)
    node.machine.set_silent(1, True)
    await node.kubelet.until(healthy=0, listed=200)
    assert SAID in node.plugin_log.read_text()
    assert (await reasons(api)).count("AcceleratorDriverBroken") == 1
    _, metrics = await node.page("/metrics")
    assert "edgeshare_deviceplugin_driver_broken 1" in metrics
    # One that has its units starts: the manager knows of it at once.
    await node.kubelet.start_container(pod, "main")
    assert set(await node.allocations()) == {"before/main"}
    node.machine.set_silent(1, False)
    await node.kubelet.until(healthy=200)
    node.machine.set_silent(1, True)
    await node.kubelet.until(healthy=0, listed=200)
    began = time.monotonic()
    assert await node.stop_plugin(signal.SIGTERM) == 0
    assert time.monotonic() - began < ENDS_WITHIN_S
    began = time.monotonic()
    await node.stop_manager()
    assert time.monotonic() - began < ENDS_WITHIN_S


async def test_one_that_is_silent_from_the_start_on_is_told_and_no_device_is_taken_for_lost(
    node: Node, api: ApiServer
) -> None:
    await node.start_manager()
    node.machine.set_silent(1, True)
    await start_plugin(node)
    await node.until_said(SAID)
    status, why = await node.page("/readyz")
    assert status == 503
    assert SAID in why
    assert await reasons(api) == ["AcceleratorDriverBroken"]
    assert node.kubelet.registrations == []
    node.machine.set_silent(1, False)
    await node.kubelet.until(healthy=200)
