"""The configuration changes while pods run, and what is wrong with it is said."""

import signal
from typing import Any

from simgpu.create import create, destroy
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import Pod
from tests.kit.processes.waiting import until_true

FIRST, SECOND = UUIDS
SMALL = {"configs": {"small": {"exclude": [{"index": 1}]}}}
"""A config that leaves the second GPU out."""


async def start(node: Node, **config: Any) -> None:
    await node.start_plugin(**node.with_api, **config)


def reconfigure(node: Node, **config: Any) -> None:
    node.configure(**node.with_api, **config)


def label(api: ApiServer, name: str) -> None:
    api.nodes["n1"]["metadata"]["labels"] = {"edge/config": name}


def events(api: ApiServer, reason: str) -> list[str]:
    return [event["message"] for event in api.events if event["reason"] == reason]


async def until_events(api: ApiServer, reason: str, count: int = 1) -> list[str]:
    await until_true(lambda: len(events(api, reason)) >= count)
    return events(api, reason)


async def test_a_changed_configmap_holds_without_dropping_a_running_pod(in_cluster: Node, api: ApiServer) -> None:
    kubelet = in_cluster.kubelet
    trainer, other = Pod("trainer", {"main": 50}), Pod("other", {"main": 100})
    for pod in (trainer, other):
        api.put_pod(pod.name, pod.uid, {"main": {"edge/gpu-percent": str(pod.containers["main"])}})
    before = await kubelet.run(trainer)
    await kubelet.run(other)
    gpu, endpoint = before["main"].envs["NVIDIA_VISIBLE_DEVICES"], kubelet.plugin.endpoint

    reconfigure(in_cluster, exclude=[{"id": gpu}])
    await kubelet.until(healthy=100, listed=200)
    assert not any(unit.startswith(gpu) for unit in kubelet.healthy())
    # It may start again, and nobody else gets what is left of that GPU.
    assert {"main": await kubelet.start_container(trainer, "main")} == before
    assert set(await in_cluster.allocations()) == {"trainer/main", "other/main"}

    kubelet.end(trainer)
    del api.pods["team", "trainer"]
    await in_cluster.until_allocations_are("other/main")
    await kubelet.until(healthy=100, listed=100)
    reconfigure(in_cluster)
    await kubelet.until(healthy=200)
    assert kubelet.plugin.endpoint == endpoint
    assert set(await in_cluster.allocations()) == {"other/main"}


async def test_a_wrong_new_configuration_is_one_line_and_an_event_and_the_old_one_stays(
    node: Node, api: ApiServer
) -> None:
    await start(node, exclude=[{"index": 1}])
    await node.kubelet.until(healthy=100, listed=100)
    node.configure("rescan_s: soon\n")
    (event,) = await until_events(api, "ConfigRefused")
    assert f"config 'default' holds as it was: {node.config}: rescan_s: " in event
    # The same once more, and a file that is gone for a while, are told once each.
    node.configure("rescan_s:  soon\n")
    reconfigure(node)
    await node.kubelet.until(healthy=200)
    assert events(api, "ConfigRefused") == [event]
    assert node.plugin_log.read_text().count("holds as it was") == 1
    assert len(node.kubelet.registrations) == 1


async def test_the_nodes_label_picks_its_config(node: Node, api: ApiServer) -> None:
    label(api, "small")
    await start(node, **SMALL)
    await node.kubelet.until(healthy=100, listed=100)


async def test_a_changed_label_holds_after_sighup(node: Node, api: ApiServer) -> None:
    await start(node, **SMALL)
    await node.kubelet.until(healthy=200)
    label(api, "small")
    assert node.plugin is not None
    node.plugin.send_signal(signal.SIGHUP)
    await node.kubelet.until(healthy=100, listed=100)
    assert len(node.kubelet.registrations) == 1


async def test_a_label_that_names_no_config_is_an_event_and_what_held_stays(node: Node, api: ApiServer) -> None:
    label(api, "large")
    await start(node, **SMALL)
    await node.kubelet.until(healthy=200)
    (event,) = await until_events(api, "ConfigUnknown")
    assert event == (
        "config 'default' holds as it was: label edge/config: no config is named 'large': there are default, small"
    )
    # It comes with the next file.
    reconfigure(node, configs={"large": {"exclude": [{"id": FIRST}]}})
    await node.kubelet.until(healthy=100, listed=100)
    assert all(unit.startswith(SECOND) for unit in node.kubelet.healthy())


async def test_a_node_comes_up_with_its_config_while_the_api_server_is_away(node: Node, api: ApiServer) -> None:
    label(api, "small")
    await start(node, **SMALL)
    await node.kubelet.until(healthy=100, listed=100)
    await node.stop_plugin(signal.SIGTERM)
    api.broken = True
    await start(node, **SMALL)
    await node.kubelet.until(registrations=2, healthy=100, listed=100)


async def test_a_config_that_names_a_device_that_is_not_there_says_which_and_shares_the_others(
    node: Node, api: ApiServer
) -> None:
    await start(node, exclude=[{"id": "GPU-elsewhere"}, {"index": 1}])
    await node.kubelet.until(healthy=100, listed=100)
    (event,) = await until_events(api, "ConfiguredDeviceMissing")
    assert event.startswith("exclude names a device that is not there (id: GPU-elsewhere): correct it; this node has ")
    assert f"0: {FIRST} " in event
    assert f"1: {SECOND} " in event
    assert event in node.plugin_log.read_text()


async def test_a_broken_driver_is_an_event_with_its_cause_and_none_is_not(node: Node, api: ApiServer) -> None:
    await start(node, driver=False)
    await node.kubelet.until(healthy=0)
    await node.stop_plugin(signal.SIGTERM)
    assert api.events == []

    destroy(node.machine_dir)
    await start(node)
    await node.kubelet.until(registrations=2, healthy=0)
    (event,) = await until_events(api, "AcceleratorDriverBroken")
    assert "no NVIDIA driver answers here: the kernel module is not loaded" in event
    create(node.machine_dir, uuids=UUIDS)
    await node.kubelet.until(healthy=200)


async def test_an_event_that_cannot_be_written_is_written_later(node: Node, api: ApiServer) -> None:
    api.broken = True
    await start(node, exclude=[{"id": "GPU-elsewhere"}])
    await node.kubelet.until(healthy=200)
    await node.until_said("the node is not told of its GPUs")
    api.broken = False
    assert node.plugin is not None
    node.plugin.send_signal(signal.SIGHUP)
    assert len(await until_events(api, "ConfiguredDeviceMissing")) == 1


async def test_a_gpu_that_another_plugin_has_too_is_refused_with_an_event_unless_it_is_left_out(
    node: Node, api: ApiServer
) -> None:
    node.kubelet.others = {"nvidia.com/gpu": [FIRST], "example.com/nic": ["0"]}
    await start(node)
    await node.kubelet.until(healthy=100, listed=100)
    assert all(unit.startswith(SECOND) for unit in node.kubelet.healthy())
    (event,) = await until_events(api, "DeviceAdvertisedTwice")
    assert event.startswith(f"GPU {FIRST} is not shared: nvidia.com/gpu on this node has it too; leave it out")
    await node.stop_plugin(signal.SIGTERM)
    api.events.clear()
    await start(node, exclude=[{"id": FIRST}])
    await node.kubelet.until(registrations=2, healthy=100, listed=100)
    assert events(api, "DeviceAdvertisedTwice") == []


async def test_a_declared_device_is_shared_from_the_change_on_that_declares_it(node: Node, api: ApiServer) -> None:
    await start(node)
    await node.kubelet.until(healthy=200)
    board = {"id": "board-1", "model": "Board", "memory_mib": 1000, "paths": ["/dev/null"]}
    reconfigure(node, inventory={"declared": [board]})
    await node.kubelet.until(healthy=300)
    assert "board-1::00" in node.kubelet.healthy()
    reconfigure(node, inventory={"sources": []})
    await node.kubelet.until(healthy=0, listed=0)
    assert len(node.kubelet.registrations) == 1
