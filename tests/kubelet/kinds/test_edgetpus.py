"""EdgeTPUs are a resource of their own, beside the GPUs', and each pod gets the one that it was assigned."""

import asyncio
import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from deviceplugin.pods.podresources import InFlight, Listings
from edgeshare.kubelet.podresources import PodResources
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as kubelet_api
from edgeshare.v1.allocations_pb2 import SHARE_CLASS_LATENCY
from simgpu.tpu import Tpus, add_tpus
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import FIRST, SECOND, UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod
from tests.kit.kubelet.scripted_kubelet import ScriptedKubelet
from tests.kit.processes.waiting import until_true

GPU_PERCENT = "edge/gpu-percent"
TPU_PERCENT = "edge/tpu-percent"
PCIE = "0000:03:00.0"
CORALS = (PCIE, "0000:04:00.0")
PRELOAD = "/etc/ld.so.preload"
SAFETY_S = 30

Answers = dict[str, kubelet_api.ContainerAllocateResponse]


class TpuNode:
    """A node whose kubelet knows two resources of ours."""

    def __init__(self, node: Node, api: ApiServer) -> None:
        self.node = node
        self.api = api
        self.tpus: Tpus = add_tpus(node.machine_dir)
        self.kubelet = node.kubelet.beside[TPU_PERCENT] = ScriptedKubelet(node.root / "kubelet", TPU_PERCENT)

    @property
    def inventory(self) -> dict[str, object]:
        """Where both parts look for devices."""
        return {"sources": ["nvml", "edgetpu"], "root": str(self.tpus.folder)}

    async def start_plugin(self, **config: object) -> None:
        await self.node.start_plugin(inventory=self.inventory, **self.node.with_api, **config)

    async def start(self, **config: object) -> None:
        """Manager and plugin."""
        await self.node.start_manager(inventory=self.inventory)
        await self.start_plugin(**config)
        await self.node.kubelet.until(healthy=200)

    def put(self, pod: Pod, gpus: int, tpus: int, **annotations: str) -> None:
        """Tells the API server of a pod whose container asks for so much of each."""
        limits = {resource: str(size) for resource, size in ((GPU_PERCENT, gpus), (TPU_PERCENT, tpus)) if size}
        self.api.put_pod(
            pod.name,
            pod.uid,
            {"main": limits},
            {f"edge/{key.replace('_', '-')}": value for key, value in annotations.items()},
            {},
        )

    async def run(self, name: str, gpus: int, tpus: int, **annotations: str) -> Answers:
        """Admits a pod, and starts its container; the answers by resource. All of its Allocates come first, as a
        kubelet does it."""
        pod = Pod(name, {"main": gpus})
        self.put(pod, gpus, tpus, **annotations)
        await self.node.kubelet.admit(pod)
        answers = {}
        if tpus:
            await self.kubelet.admit(replace(pod, containers={"main": tpus}))
            answers[TPU_PERCENT] = await self.kubelet.start_container(pod, "main")
        if gpus:
            answers[GPU_PERCENT] = await self.node.kubelet.start_container(pod, "main")
        return answers

    def end(self, name: str) -> None:
        """The pod is over."""
        for kubelet in (self.node.kubelet, self.kubelet):
            for pod in [pod for pod in kubelet.pods.values() if pod.name == name]:
                kubelet.end(pod)
        del self.api.pods["team", name]


@pytest.fixture
async def tpu_node(node: Node, api: ApiServer) -> TpuNode:
    """A node with two GPUs and an EdgeTPU, registered."""
    machine = TpuNode(node, api)
    add_tpus(node.machine_dir, PCIE)
    await machine.start()
    await machine.kubelet.until(healthy=100)
    return machine


def mounts(answer: kubelet_api.ContainerAllocateResponse) -> dict[str, str]:
    return {mount.container_path: mount.host_path for mount in answer.mounts}


def preloads(answers: Answers) -> set[str]:
    """What the preload files say: a container has one, and the kubelet says not which."""
    return {Path(mounts(answer)[PRELOAD]).read_text() for answer in answers.values()}


async def test_an_edgetpu_has_a_resource_of_its_own_and_what_a_pod_asks_for_reaches_the_manager(
    tpu_node: TpuNode,
) -> None:
    answers = await tpu_node.run("camera", 0, 30, gpu_percent_limit="60", share_class="latency")
    (allocation,) = await tpu_node.node.allocations_of("camera")
    assert (allocation.owner.pod, list(allocation.device_ids)) == ("camera", [PCIE])
    assert (allocation.request_percent, allocation.limit_percent) == (30, 60)
    assert allocation.share_class == SHARE_CLASS_LATENCY
    answer = answers[TPU_PERCENT]
    assert [(node.container_path, node.permissions) for node in answer.devices] == [("/dev/apex_0", "rw")]
    # No word of GPUs, and its own folder beside theirs.
    assert dict(answer.envs) == {}
    folder = Path(mounts(answer)["/run/edgeshare-tpu"])
    assert folder.name == allocation.id
    assert "device=/dev/apex_0" in (folder / "hook.conf").read_text()
    assert "/run/edgeshare" not in mounts(answer)


async def test_a_container_with_both_has_two_allocations_and_one_preload_file(tpu_node: TpuNode) -> None:
    answers = await tpu_node.run("both", 40, 30)
    gpu, tpu = answers[GPU_PERCENT], answers[TPU_PERCENT]
    owned = await tpu_node.node.allocations_of("both")
    assert sorted(device for each in owned for device in each.device_ids) == [PCIE, UUIDS[0]]
    assert sorted(each.request_percent for each in owned) == [30, 40]
    # Where both say what lies at a path, they say the same, or the kubelet takes whichever comes first.
    both = mounts(gpu).keys() & mounts(tpu).keys()
    assert {path for path in both if mounts(gpu)[path] != mounts(tpu)[path]} == {PRELOAD}
    (said,) = preloads(answers)
    assert said.strip() in mounts(gpu)


@pytest.mark.parametrize(("gpus", "tpus", "hooked"), [(100, 30, True), (30, 100, True), (100, 100, False)])
async def test_one_part_of_either_is_enough_for_the_hook(tpu_node: TpuNode, gpus: int, tpus: int, hooked: bool) -> None:
    (said,) = preloads(await tpu_node.run("both", gpus, tpus))
    assert bool(said) == hooked


async def test_each_resource_keeps_its_own_books(tpu_node: TpuNode) -> None:
    await tpu_node.run("both", 40, 60)
    with pytest.raises(AdmissionError, match="60 units asked for, 40 are free"):
        await tpu_node.run("second", 0, 60)
    await tpu_node.node.kubelet.admit(Pod("third", {"main": 100}))
    # Neither takes the other's for allocations of pods that are over.
    await asyncio.sleep(1)
    assert len(await tpu_node.node.allocations_of("both")) == 2
    tpu_node.end("both")
    async with asyncio.timeout(SAFETY_S):
        while await tpu_node.node.allocations_of("both"):  # noqa: ASYNC110 - the manager tells of no change
            await asyncio.sleep(0.05)
    await tpu_node.run("second", 0, 60)


async def test_lost_records_of_both_are_made_anew_each_as_it_was(tpu_node: TpuNode) -> None:
    await tpu_node.run("both", 40, 60)
    before = {each.id: each for each in await tpu_node.node.allocations_of("both")}
    await tpu_node.node.stop_plugin(signal.SIGTERM)
    shutil.rmtree(tpu_node.node.state_dir)
    await tpu_node.start_plugin()
    for allocation_id in before:
        await tpu_node.node.until_said(f"the record of {allocation_id} of team/both/main was lost: made anew")
    for kubelet, healthy in ((tpu_node.node.kubelet, 200), (tpu_node.kubelet, 100)):
        await kubelet.until(registrations=2, healthy=healthy)
        (pod,) = kubelet.pods.values()
        await kubelet.start_container(pod, "main")
    assert {each.id: each for each in await tpu_node.node.allocations_of("both")} == before


async def test_a_device_that_is_not_well_is_told_with_its_resource_and_refused_by_its_name(tpu_node: TpuNode) -> None:
    (tpu_node.tpus.folder / "sys/class/apex/apex_0/status").write_text("DEAD\n")
    await tpu_node.kubelet.until(listed=100, healthy=0)
    assert len(tpu_node.node.kubelet.healthy()) == 200
    await tpu_node.node.until_said(f"EdgeTPU {PCIE} is not healthy: its driver says DEAD")


async def test_a_node_without_one_says_nothing_of_them_until_there_is_one(node: Node, api: ApiServer) -> None:
    machine = TpuNode(node, api)
    await machine.start(metrics_address="127.0.0.1:0")
    await node.until_said(f"registered as {GPU_PERCENT}")
    assert machine.kubelet.asked == 0
    assert await node.page("/readyz") == (200, "ok\n")
    assert TPU_PERCENT not in (await node.page("/metrics"))[1]
    add_tpus(node.machine_dir, PCIE)
    await node.until_said(f"registered as {TPU_PERCENT}")
    assert 'edgeshare_deviceplugin_registered{resource="edge/tpu-percent"} 1.0' in (await node.page("/metrics"))[1]


async def test_nothing_is_listed_while_units_of_either_are_handed_out(node: Node) -> None:
    """The kubelet would forget those of the other, too."""
    in_flight = InFlight()
    gpus, tpus = (
        Listings(PodResources(node.kubelet.resources_socket, each), in_flight) for each in (GPU_PERCENT, TPU_PERCENT)
    )
    with gpus.allocating():
        listing = asyncio.create_task(tpus.list())
        done, _ = await asyncio.wait([listing], timeout=0.5)
        assert not done
    async with asyncio.timeout(SAFETY_S):
        assert await listing == {}


@pytest.fixture
async def two(node: Node, api: ApiServer) -> TpuNode:
    """A node with two GPUs and two EdgeTPUs, registered."""
    machine = TpuNode(node, api)
    add_tpus(node.machine_dir, *CORALS)
    await machine.start()
    await machine.kubelet.until(healthy=200)
    return machine


def assigned(gpus: tuple[str, ...] = (), tpus: tuple[str, ...] = ()) -> str:
    """The annotation of a pod of one container."""
    lists = {GPU_PERCENT: gpus, TPU_PERCENT: tpus}
    return json.dumps({"main": {resource: ids for resource, ids in lists.items() if ids}})


async def devices_of(machine: TpuNode, name: str) -> set[str]:
    return {device for each in await machine.node.allocations_of(name) for device in each.device_ids}


async def test_equal_pods_get_each_its_own_edgetpu(two: TpuNode) -> None:
    # By itself the plugin would put both on one.
    for name, coral in (("a", CORALS[1]), ("b", CORALS[0]), ("c", CORALS[1])):
        answers = await two.run(name, 0, 40, gpu_assignment=assigned(tpus=(coral,)))
        assert await devices_of(two, name) == {coral}
        (path,) = [each.host_path for each in answers[TPU_PERCENT].devices]
        assert path.endswith(f"/apex_{CORALS.index(coral)}")


async def test_a_container_with_both_gets_both_as_assigned(two: TpuNode) -> None:
    await two.run("both", 40, 30, gpu_assignment=assigned((SECOND,), (CORALS[1],)))
    assert await devices_of(two, "both") == {SECOND, CORALS[1]}


async def test_what_is_assigned_is_not_given_to_one_that_packs_by_itself(two: TpuNode) -> None:
    two.put(Pod("later", {"main": 0}), 0, 60, gpu_assignment=assigned(tpus=(CORALS[0],)))
    await until_true(two.api.all_told)
    await two.run("free", 0, 50)
    assert await devices_of(two, "free") == {CORALS[1]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            assigned(tpus=("0000:09:00.0",)),
            "EdgeTPU 0000:09:00.0, which team/odd/main is assigned, is not on this node",
        ),
        # A GPU is no EdgeTPU, whoever says so.
        (assigned(tpus=(FIRST,)), f"EdgeTPU {FIRST}, which team/odd/main is assigned, is not on this node"),
        (assigned(tpus=CORALS), "names 2 EdgeTPUs for container main, whose 30 units are of 1"),
        (json.dumps({"other": {TPU_PERCENT: [CORALS[0]]}}), "names no EdgeTPU for container main"),
        (json.dumps({"main": {TPU_PERCENT: [CORALS[0]], "edge/npu-percent": ["x"]}}), "names what is not shared"),
        (assigned((FIRST,), (FIRST,)), "annotation edge/gpu-assignment names a device as one of several kinds"),
    ],
)
async def test_a_wrong_assignment_fails_the_pod(two: TpuNode, text: str, said: str) -> None:
    with pytest.raises(AdmissionError, match=said):
        await two.run("odd", 0, 30, gpu_assignment=text)
    assert await two.node.allocations_of("odd") == []


async def test_a_full_or_ill_edgetpu_fails_the_pod_that_is_assigned_it(two: TpuNode) -> None:
    await two.run("first", 0, 60, gpu_assignment=assigned(tpus=(CORALS[1],)))
    full = f"team/second/main is assigned 50 units of EdgeTPU {CORALS[1]}, but free are 40 of {CORALS[1]}"
    with pytest.raises(AdmissionError, match=full):
        await two.run("second", 0, 50, gpu_assignment=assigned(tpus=(CORALS[1],)))
    (two.tpus.folder / "sys/class/apex/apex_0/status").write_text("DEAD\n")
    await two.kubelet.until(listed=200, healthy=100)
    ill = f"EdgeTPU {CORALS[0]}, which team/third/main is assigned, is not healthy"
    with pytest.raises(AdmissionError, match=ill):
        await two.run("third", 0, 30, gpu_assignment=assigned(tpus=(CORALS[0],)))


async def test_an_assignment_that_names_no_edgetpu_leaves_it_to_the_node(two: TpuNode) -> None:
    await two.run("both", 40, 30, gpu_assignment=json.dumps({"main": [SECOND]}))
    assert await devices_of(two, "both") == {SECOND, CORALS[0]}


async def test_without_a_cluster_part_the_plugin_writes_what_it_chose_of_each_kind(two: TpuNode) -> None:
    await two.run("both", 40, 30)
    await two.run("camera", 0, 30)
    for name, gpus in (("both", (FIRST,)), ("camera", ())):
        annotations = two.api.pods["team", name]["metadata"]["annotations"]
        await until_true(lambda annotations=annotations: "edge/gpu-assignment" in annotations)
        assert json.loads(annotations["edge/gpu-assignment"]) == json.loads(assigned(gpus, (CORALS[0],)))
