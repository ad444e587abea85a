"""What the plugin serves over HTTP: whether it is ready, and its figures."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod

ON = {"metrics_address": "127.0.0.1:0"}
SAFETY_S = 30
PREFIX = "edgeshare_deviceplugin_"


async def values(node: Node) -> dict[str, float]:
    """Each sample by its name, with the labels' values in the order of their names."""
    status, text = await node.page("/metrics")
    assert status == 200
    return {
        ",".join(
            [sample.name.removeprefix(PREFIX), *(sample.labels[name] for name in sorted(sample.labels))]
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def until_ready(node: Node, status: int) -> str:
    async with asyncio.timeout(SAFETY_S):
        while (answer := await node.page("/readyz"))[0] != status:  # noqa: ASYNC110 - a page tells of no change
            await asyncio.sleep(0.05)
    return answer[1]


async def test_it_is_ready_while_the_kubelet_has_its_list_and_well_all_the_time(node: Node) -> None:
    node.kubelet.takes_lists = False
    await node.start_plugin(**ON)
    await node.kubelet.until_asked(1)
    assert (await node.page("/readyz"))[0] == 503
    assert await node.page("/healthz") == (200, "ok\n")
    await node.kubelet.stop()
    node.kubelet.takes_lists = True
    assert (await until_ready(node, 503)) != ""
    await node.until_said("no kubelet listens at")
    await node.kubelet.start()
    await until_ready(node, 200)
    await node.kubelet.until(healthy=200)
    assert (await values(node))["registered,edge/gpu-percent"] == 1
    await node.kubelet.stop()
    await until_ready(node, 503)
    assert (await values(node))["registered,edge/gpu-percent"] == 0
    assert await node.page("/healthz") == (200, "ok\n")


async def test_no_hardware_is_ready_with_a_metric_that_says_0(node: Node) -> None:
    await node.start_plugin(driver=False, **ON)
    await until_ready(node, 200)
    told = await values(node)
    assert told["devices_found,gpu"] == told["devices_found,edgetpu"] == told["devices,gpu"] == 0
    assert told["driver_broken"] == 0


async def test_metrics_tell_devices_allocations_refusals_and_durations(node: Node) -> None:
    await node.start_manager()
    await node.start_plugin(**ON, exclude=[{"index": 1}])
    await node.kubelet.until(healthy=100)
    await node.kubelet.run(Pod("trainer", {"main": 60}))
    # All that are left: so the kubelet asks for no preference.
    node.kubelet.plugin.units |= {f"{UUIDS[1]}::{unit:02}": "Healthy" for unit in range(10)}
    with pytest.raises(AdmissionError):
        await node.kubelet.admit(Pod("late", {"main": 50}))
    node.machine.inject_xid(0, 79)
    await node.kubelet.until(healthy=0)
    told = await values(node)
    assert told["devices_found,gpu"] == 2
    assert told["devices,gpu"] == 1
    assert told[f"device_healthy,{UUIDS[0]},0,gpu,{node.machine.gpus()[0].name}"] == 0
    assert told["live_allocations"] == told["allocations_total"] == 1
    assert told["refusals_total,Allocate,NotFound"] == 1
    assert told["allocate_duration_seconds_count"] == 2
    assert 0 < told["allocate_duration_seconds_sum"] < SAFETY_S
    assert told["registrations_total"] == 1
    assert told["config_info,default"] == 1
    assert told["config_refused"] == 0
    node.configure(
        "nonsense: 1\n",
    )
    await node.until_said("unknown key 'nonsense'")
    assert (await values(node))["config_refused"] == 1
