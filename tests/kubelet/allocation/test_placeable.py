"""Where nobody places pods by device, the kubelet hears of as many free units as one container can be given."""

import json
import signal
from dataclasses import replace
from typing import Any

import pytest

from simgpu.tpu import add_tpus
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import FIRST, UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod
from tests.kit.kubelet.scripted_kubelet import ScriptedKubelet
from tests.kit.kubelet.wishes import device_of, put
from tests.kit.processes.waiting import until_true

TPU_PERCENT = "edge/tpu-percent"
CORALS = ("0000:03:00.0", "0000:04:00.0")


class Placing:
    """A node in a cluster whose scheduler adds up, and its pods."""

    def __init__(self, node: Node, api: ApiServer) -> None:
        self.node = node
        self.kubelet = node.kubelet
        self.api = api
        self.pods: dict[str, Pod] = {}

    async def start(self, **config: Any) -> None:
        await self.node.start_manager()
        await self.start_plugin(**config)
        await self.kubelet.until(healthy=200)
        await until_true(self.api.all_told)

    async def start_plugin(self, **config: Any) -> None:
        await self.node.start_plugin(**{"advertise": "placeable", **self.node.with_api, **config})

    async def run(self, name: str, percent: int, memory: str = "") -> str:
        """Admits a pod, and starts it; its device."""
        pod = self.pods[name] = put(self.api, Pod(name, {"main": percent}), memory)
        (device,) = await device_of(self.node, pod)
        await self.kubelet.start_container(pod, "main")
        return device

    def end(self, name: str) -> None:
        """The pod is gone: for the kubelet, and then for all."""
        self.kubelet.end(self.pods.pop(name))
        self.api.end_pod(name)

    def devices(self) -> set[str]:
        """Of which there are units to be had."""
        return {unit.partition("::")[0] for unit in self.kubelet.free()}


@pytest.fixture
def placing(node: Node, api: ApiServer) -> Placing:
    """Nothing runs yet."""
    return Placing(node, api)


@pytest.fixture
async def scattered(placing: Placing) -> Placing:
    """Each of two GPUs has 40 units free, and one's are hidden."""
    await placing.start()
    for name in ("one", "other"):
        await placing.run(name, 60)
    await placing.kubelet.until(healthy=160)
    return placing


async def test_of_what_is_free_on_two_gpus_the_kubelet_hears_of_ones(scattered: Placing) -> None:
    assert len(scattered.kubelet.free()) == 40
    assert len(scattered.devices()) == 1
    with pytest.raises(AdmissionError, match="50 units asked for, 40 are free"):
        await scattered.run("too-large", 50)
    scattered.api.end_pod("too-large")
    await scattered.run("fits", 40)
    # Nothing that a pod has is hidden, and the other GPU's are there at once.
    await scattered.kubelet.until(healthy=200)
    await scattered.run("fits-too", 40)
    assert scattered.kubelet.free() == set()


async def test_hidden_units_are_those_of_a_healthy_gpu_to_everybody_else(placing: Placing) -> None:
    await placing.start(metrics_address="127.0.0.1:0")
    for name in ("one", "other"):
        await placing.run(name, 60)
    await placing.kubelet.until(healthy=160)
    _, text = await placing.node.page("/metrics")
    healthy = [line for line in text.splitlines() if line.startswith("edgeshare_deviceplugin_device_healthy{")]
    assert [line.rpartition(" ")[2] for line in healthy] == ["1.0", "1.0"]
    await until_true(lambda: placing.api.accelerator_nodes["n1"]["status"]["allocationCount"] == 2)
    status = placing.api.accelerator_nodes["n1"]["status"]
    assert (status["deviceCount"], status["healthyCount"]) == (2, 2)
    assert placing.api.events == []


@pytest.mark.parametrize("ends", ["one", "other"])
async def test_when_a_holder_ends_its_gpu_is_there_whole_as_soon_as_the_scheduler_knows(
    placing: Placing, ends: str
) -> None:
    await placing.start()
    devices = {name: await placing.run(name, 60) for name in ("one", "other")}
    await placing.kubelet.until(healthy=160)
    # Nothing can be compared, which takes its time: the pods' watch alone tells.
    await placing.kubelet.stop_listing()
    placing.end(ends)
    await placing.kubelet.until(healthy=200)
    await placing.kubelet.listen_again()
    assert await placing.run("waited", 70) == devices[ends]


async def test_a_plugin_and_a_kubelet_that_start_anew_hide_the_same(scattered: Placing) -> None:
    free = scattered.kubelet.free()
    await scattered.node.stop_plugin(signal.SIGKILL)
    await scattered.start_plugin()
    await scattered.kubelet.until(registrations=2, healthy=160)
    assert scattered.kubelet.free() == free
    await scattered.kubelet.stop()
    await scattered.kubelet.start()
    await scattered.kubelet.until(healthy=160)
    assert scattered.kubelet.free() == free
    for pod in scattered.pods.values():
        await scattered.kubelet.start_container(pod, "main")


async def test_whole_gpus_are_told_with_parts_of_others_that_make_no_further_one(placing: Placing) -> None:
    uuids = [*UUIDS, "GPU-00000000-0000-0000-0000-00000000000c", "GPU-00000000-0000-0000-0000-00000000000d"]
    placing.node.simulate(gpus=4, uuids=uuids)
    await placing.node.start_manager()
    await placing.start_plugin()
    await placing.kubelet.until(healthy=400)
    for name in ("one", "two", "three"):
        await placing.run(name, 60)
    # 100 and three times 40 are free: a pod of 200 would be sent here by that sum.
    await placing.kubelet.until(healthy=400 - 21)
    with pytest.raises(AdmissionError, match="200 units asked for, 199 are free"):
        await placing.run("too-large", 200)
    placing.api.end_pod("too-large")
    await placing.run("part", 40)
    await placing.run("whole", 100)
    await placing.kubelet.until(healthy=400 - 40)
    for name in ("one", "two", "part"):
        placing.end(name)
    await placing.kubelet.until(healthy=400)
    await placing.kubelet.admit(put(placing.api, Pod("two-wholes", {"main": 200})))


async def test_a_gpu_that_is_not_healthy_has_nothing_that_could_be_told(scattered: Placing) -> None:
    ill = UUIDS.index(next(iter(scattered.devices())))
    scattered.node.machine.inject_xid(ill, 79)
    # The other's, of which 40 were hidden.
    await scattered.kubelet.until(healthy=100)
    assert scattered.devices() == {UUIDS[1 - ill]}


async def test_where_somebody_places_pods_by_gpu_the_kubelet_hears_of_all(placing: Placing) -> None:
    await placing.start(advertise="all")
    for name in ("one", "other"):
        await placing.run(name, 60)
    placing.node.configure(**placing.node.with_api, advertise="placeable")
    await placing.kubelet.until(healthy=160)
    placing.node.configure(**placing.node.with_api, advertise="all")
    await placing.kubelet.until(healthy=200)
    assert placing.devices() == set(UUIDS)


async def test_units_whose_record_is_lost_are_not_hidden(placing: Placing) -> None:
    await placing.start(advertise="all")
    for name, percent in (("one", 60), ("other", 60), ("third", 20)):
        await placing.run(name, percent)
    # The manager does not know it, as it is still to start.
    lost = put(placing.api, Pod("lost", {"main": 10}))
    assert await device_of(placing.node, lost) == {FIRST}
    held = placing.kubelet.held[lost.uid, "main"]
    await placing.node.stop_plugin(signal.SIGKILL)
    records = (placing.node.state_dir / "deviceplugin").glob("*/record.json")
    (record,) = [record for record in records if set(json.loads(record.read_text())["unit_ids"]) == held]
    record.unlink()
    await placing.start_plugin()
    # The other GPU has more; of this one what is really free is hidden.
    await placing.kubelet.until(registrations=2, healthy=190)
    assert held <= placing.kubelet.healthy()


async def test_edgetpus_are_told_likewise(placing: Placing) -> None:
    node = placing.node
    inventory = {"sources": ["nvml", "edgetpu"], "root": str(add_tpus(node.machine_dir, *CORALS).folder)}
    kubelet = node.kubelet.beside[TPU_PERCENT] = ScriptedKubelet(node.root / "kubelet", TPU_PERCENT)
    await node.start_manager(inventory=inventory)
    await placing.start_plugin(inventory=inventory)
    await kubelet.until(healthy=200)
    for name in ("one", "other"):
        pod = Pod(name, {"main": 0})
        placing.api.put_pod(name, pod.uid, {"main": {TPU_PERCENT: "60"}})
        await node.kubelet.admit(pod)
        await kubelet.admit(replace(pod, containers={"main": 60}))
    await kubelet.until(healthy=160)
    assert len({unit.partition("::")[0] for unit in kubelet.free()}) == 1
    assert len(node.kubelet.healthy()) == 200
