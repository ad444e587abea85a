"""What pods ask for reaches the manager, what is wrong is refused, and the node says what it has."""

import asyncio
import re
import shutil
import signal
from pathlib import Path

import pytest

from deviceplugin.cluster.node import Node as NodeStatus
from edgeshare.contract.devices import Device
from edgeshare.kube.kube import Kube
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as kubelet_api
from edgeshare.v1.allocations_pb2 import SHARE_CLASS_LATENCY
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import MEMORY_MIB, UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod, StartError
from tests.kit.kubelet.wishes import put
from tests.kit.processes.waiting import until_true


def preload_file(answer: kubelet_api.ContainerAllocateResponse) -> str:
    (mount,) = [mount for mount in answer.mounts if mount.container_path == "/etc/ld.so.preload"]
    with open(mount.host_path) as file:  # noqa: PTH123
        return file.read()


async def test_what_a_pod_asks_for_reaches_the_manager(in_cluster: Node, api: ApiServer) -> None:
    pod = put(api, Pod("trainer", {"main": 30}), "2k", gpu_percent_limit="60", share_class="latency")
    await in_cluster.kubelet.run(pod)
    allocation = (await in_cluster.allocations())["trainer/main"]
    assert (allocation.request_percent, allocation.limit_percent, allocation.memory_mib) == (30, 60, 2000)
    assert allocation.share_class == SHARE_CLASS_LATENCY
    assert allocation.owner.pod_uid == pod.uid


async def test_edits_of_a_running_pod_change_nothing_when_its_container_starts_again(
    in_cluster: Node, api: ApiServer
) -> None:
    pod = put(api, Pod("trainer", {"main": 30}), gpu_percent_limit="60")
    await in_cluster.kubelet.run(pod)
    before = await in_cluster.allocations()
    put(api, pod, gpu_percent_limit="29", share_class="nonsense")
    await in_cluster.kubelet.start_container(pod, "main")
    assert await in_cluster.allocations() == before


@pytest.mark.parametrize(("size", "memory"), [(30, "2000"), (100, ""), (100, "2000")])
async def test_a_lost_record_is_made_anew_as_it_was(in_cluster: Node, api: ApiServer, size: int, memory: str) -> None:
    pod = put(api, Pod("trainer", {"main": size}), memory)
    hooked = preload_file((await in_cluster.kubelet.run(pod))["main"])
    before = await in_cluster.allocations()
    await in_cluster.stop_plugin(signal.SIGTERM)
    shutil.rmtree(in_cluster.state_dir)
    put(api, pod, share_class="latency")
    await in_cluster.start_plugin(**in_cluster.with_api)
    await in_cluster.until_said("was lost: made anew")
    await in_cluster.kubelet.until(registrations=2, healthy=200)
    answer = await in_cluster.kubelet.start_container(pod, "main")
    assert await in_cluster.allocations() == before
    assert preload_file(answer) == hooked


@pytest.mark.parametrize(
    ("memory", "annotations", "text"),
    [
        ("", {"gpu_percent_limit": "20"}, "team/odd: annotation edge/gpu-percent-limit: a limit of 20 percent"),
        ("", {"share_class": "fast"}, "annotation edge/share-class is 'fast': expected latency or batch"),
        ("0", {}, "edge/gpu-memory-mib is 0: ask for 1 or more"),
    ],
)
async def test_a_wrong_wish_keeps_the_container_from_starting_until_it_is_put_right(
    in_cluster: Node, api: ApiServer, memory: str, annotations: dict[str, str], text: str
) -> None:
    pod = put(api, Pod("odd", {"main": 30}), memory, **annotations)
    with pytest.raises(StartError) as caught:
        await in_cluster.kubelet.run(pod)
    assert text in str(caught.value)
    assert await in_cluster.allocations() == {}
    put(api, pod)
    await in_cluster.kubelet.start_container(pod, "main")
    assert set(await in_cluster.allocations()) == {"odd/main"}


async def test_a_pod_gets_a_gpu_that_has_the_memory_it_asks_for(in_cluster: Node, api: ApiServer) -> None:
    # By units alone, all three would go to one GPU.
    for name, size, memory in (("large", 10, "15000"), ("half", 50, ""), ("small", 10, "1000")):
        await in_cluster.kubelet.run(put(api, Pod(name, {"main": size}), memory))
    devices = {name: each.device_ids[0] for name, each in (await in_cluster.allocations()).items()}
    assert devices == {"large/main": UUIDS[0], "half/main": UUIDS[1], "small/main": UUIDS[1]}


async def test_more_memory_than_any_gpu_has_left_is_refused_at_the_admission(in_cluster: Node, api: ApiServer) -> None:
    for name in ("one", "two"):
        await in_cluster.kubelet.run(put(api, Pod(name, {"main": 10}), "15000"))
    text = f"no GPU has 10 units and 2000 MiB free (free: 1000 MiB of {UUIDS[0]}, 1000 MiB of {UUIDS[1]})"
    with pytest.raises(AdmissionError, match=re.escape(text)):
        await in_cluster.kubelet.admit(put(api, Pod("three", {"main": 10}), "2000"))
    with pytest.raises(AdmissionError, match="no GPU has 10 units and the same part of the memory free"):
        await in_cluster.kubelet.admit(put(api, Pod("four", {"main": 10})))
    await in_cluster.kubelet.run(put(api, Pod("five", {"main": 10}), "1000"))


async def test_more_memory_than_a_gpu_has_is_refused_when_nobody_was_asked_for_a_preference(
    in_cluster: Node, api: ApiServer
) -> None:
    text = f"edge/gpu-memory-mib is {MEMORY_MIB + 1}, but GPU {min(UUIDS)} has {MEMORY_MIB}: ask for at most that"
    with pytest.raises(StartError, match=text):
        await in_cluster.kubelet.run(put(api, Pod("odd", {"main": 200}), str(MEMORY_MIB + 1)))


async def test_a_pod_with_the_name_of_one_that_asked_for_nothing_is_known_all_the_same(
    in_cluster: Node, api: ApiServer
) -> None:
    await in_cluster.kubelet.admit(put(api, Pod("web-0", {"main": 0})))
    await in_cluster.kubelet.run(put(api, Pod("one", {"main": 10}), "15000"))
    before = next(pod for pod in in_cluster.kubelet.pods.values() if pod.name == "web-0")
    in_cluster.kubelet.end(before)
    # The watch still tells of the old one.
    api.hold_back(True)
    await in_cluster.kubelet.run(put(api, Pod("web-0", {"main": 10}), "15000"))
    assert (await in_cluster.allocations())["web-0/main"].device_ids == [UUIDS[1]]


async def test_no_pod_is_read_at_its_admission_while_the_watch_tells_of_it(in_cluster: Node, api: ApiServer) -> None:
    for number in range(5):
        await in_cluster.kubelet.admit(put(api, Pod(f"plain-{number}", {"main": 0})))
    await in_cluster.kubelet.run(put(api, Pod("one", {"main": 10})))
    two = put(api, Pod("two", {"main": 10}))
    await until_true(api.all_told)
    reads = api.reads
    await in_cluster.kubelet.admit(two)
    assert api.reads == reads


async def test_memory_that_was_not_there_is_found_when_another_pod_has_ended(in_cluster: Node, api: ApiServer) -> None:
    big = put(api, Pod("big", {"main": 10}), "15900")
    await in_cluster.kubelet.run(big)
    # Without the API server nobody can tell at the admission how much memory is asked for.
    api.hold_back(True)
    late = put(api, Pod("late", {"main": 10}), "200")
    api.broken = True
    await in_cluster.kubelet.admit(late)
    api.broken = False
    api.hold_back(False)
    with pytest.raises(StartError, match="MiB"):
        await in_cluster.kubelet.start_container(late, "main")
    # Its units are of no use to the other: that it has ended is found out all the same.
    in_cluster.kubelet.end(big)
    api.end_pod("big")
    await in_cluster.kubelet.start_container(late, "main")
    assert set(await in_cluster.allocations()) == {"late/main"}


async def test_whole_gpus_have_the_hook_only_with_a_cap(in_cluster: Node, api: ApiServer) -> None:
    plain = (await in_cluster.kubelet.run(put(api, Pod("plain", {"main": 100}))))["main"]
    capped = (await in_cluster.kubelet.run(put(api, Pod("capped", {"main": 100}), "4096")))["main"]
    assert preload_file(plain) == ""
    assert preload_file(capped).strip() in {mount.container_path for mount in capped.mounts}
    assert (await in_cluster.allocations())["capped/main"].memory_mib == 4096


async def test_an_init_container_that_alone_has_units_is_found_by_its_pod(in_cluster: Node, api: ApiServer) -> None:
    pod = put(api, Pod("staged", {"main": 0}, init={"fetch": 30}))
    put(api, Pod("other", {"main": 30}))
    await in_cluster.kubelet.run(pod)
    assert set(await in_cluster.allocations()) == {"staged/fetch"}
    # It lasts as long as its pod, though no list ever shows it.
    await in_cluster.kubelet.start_container(pod, "fetch")
    in_cluster.kubelet.end(pod)
    api.end_pod("staged")
    await in_cluster.until_allocations_are()


async def test_two_pods_that_cannot_be_told_apart_do_not_start_at_a_guess(in_cluster: Node, api: ApiServer) -> None:
    pods = [put(api, Pod(name, {"main": 0}, init={"fetch": 30})) for name in ("a", "b")]
    for pod in pods:
        await in_cluster.kubelet.admit(pod)
    with pytest.raises(StartError, match="may be of any of team/a/fetch, team/b/fetch"):
        await in_cluster.kubelet.start_container(pods[0], "fetch")


async def test_without_the_api_server_no_new_pod_starts_and_all_others_do(in_cluster: Node, api: ApiServer) -> None:
    known, new = (put(api, Pod(name, {"main": 30})) for name in ("known", "new"))
    await in_cluster.kubelet.run(known)
    api.broken = True
    with pytest.raises(StartError, match=r"API server refuses .*: 503 etcd is away"):
        await in_cluster.kubelet.run(new)
    await in_cluster.kubelet.start_container(known, "main")
    api.broken = False
    await in_cluster.kubelet.start_container(new, "main")


async def test_the_end_of_a_pod_frees_its_share_without_another_pod_coming(in_cluster: Node, api: ApiServer) -> None:
    pod = put(api, Pod("trainer", {"main": 30}))
    await in_cluster.kubelet.run(pod)
    in_cluster.kubelet.end(pod)
    api.end_pod("trainer")
    await in_cluster.until_allocations_are()


@pytest.mark.parametrize("broken", [True, False])
async def test_a_kubelet_that_knows_no_pods_yet_ends_none(in_cluster: Node, api: ApiServer, broken: bool) -> None:
    pod = put(api, Pod("trainer", {"main": 30}))
    await in_cluster.kubelet.run(pod)
    del in_cluster.kubelet.pods[pod.uid]  # as a kubelet that started while the API server was away
    api.broken = broken
    await asyncio.sleep(1)  # several comparisons
    assert set(await in_cluster.allocations()) == {"trainer/main"}


async def test_the_node_says_how_much_memory_its_gpus_have(in_cluster: Node, api: ApiServer) -> None:
    total = {"edge/gpu-memory-mib": str(2 * MEMORY_MIB)}
    await until_true(lambda: api.nodes["n1"]["status"].get("allocatable") == total)
    assert api.nodes["n1"]["status"]["capacity"] == {"cpu": "2", **total}


async def test_a_gpu_that_fails_is_an_event_of_the_node_and_its_memory_is_not_counted(
    in_cluster: Node, api: ApiServer
) -> None:
    in_cluster.machine.inject_xid(1, 62)
    await until_true(lambda: api.events)
    (event,) = api.events
    assert (event["type"], event["reason"], event["involvedObject"]["name"]) == ("Warning", "GPUUnhealthy", "n1")
    assert event["message"].startswith(f"GPU {UUIDS[1]} is not healthy: XID 62")
    less = {"edge/gpu-memory-mib": str(MEMORY_MIB)}
    await until_true(lambda: api.nodes["n1"]["status"]["allocatable"] == less)
    # A kubelet would make them the same again.
    assert api.nodes["n1"]["status"]["capacity"] == {"cpu": "2", **less}


async def test_the_node_is_patched_when_it_says_something_else_and_only_then(api: ApiServer, root: Path) -> None:
    node = NodeStatus(Kube.from_kubeconfig(root / "kubeconfig"), "n1")
    devices = [Device(uuid, index, "Simulated", MEMORY_MIB) for index, uuid in enumerate(UUIDS)]
    await node.tell_memory(devices)
    assert api.patches == 1
    for field in ("capacity", "allocatable"):
        api.nodes["n1"]["status"][field]["edge/gpu-memory-mib"] = "32k"  # the API server's own spelling
    await node.tell_memory(devices)
    assert api.patches == 1
    api.nodes["n1"] = {"metadata": {"name": "n1"}, "status": {}}
    await node.tell_memory(devices)
    assert api.patches == 2


async def test_a_node_object_that_was_made_anew_says_it_again(in_cluster: Node, api: ApiServer) -> None:
    total = {"edge/gpu-memory-mib": str(2 * MEMORY_MIB)}
    await until_true(lambda: api.nodes["n1"]["status"].get("allocatable") == total)
    # It is a kubelet that starts which makes it, and a plugin may be quicker.
    del api.nodes["n1"]
    await in_cluster.kubelet.stop()
    await in_cluster.kubelet.start()
    await in_cluster.until_said("the API server has no node n1")
    api.nodes["n1"] = {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "2"}}}
    await until_true(lambda: api.nodes["n1"]["status"].get("allocatable") == total)


async def test_a_missing_node_is_said_and_asked_for_again(node: Node, api: ApiServer) -> None:
    await node.start_plugin(kubeconfig=str(node.root / "kubeconfig"), node_name="elsewhere")
    await node.until_said("the API server has no node elsewhere")
    await node.kubelet.until(healthy=200)
