"""An Allocate that ends in the middle leaves nothing behind, and one whose pod is still to come keeps what it got."""

import asyncio
import os
import signal
from itertools import chain
from pathlib import Path

import pytest

from deviceplugin.units.preference import by_device
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import UUIDS, Node, ended
from tests.kit.kubelet.pod import AdmissionError, Pod
from tests.kit.kubelet.wishes import assigned, put
from tests.kit.processes.waiting import until_true

SECOND = UUIDS[1]
DYING = str(Path(__file__).parents[1] / "kit/kubelet/dying_plugin.py")
POINTS = {
    "before its socket folder": ("os.mkdir", "/clients/gpu-"),
    "before its folder": ("os.mkdir", "/deviceplugin/gpu-"),
    "before its preload file": ("tempfile.mkstemp", r"/gpu-.*/\.ld\.so\.preload\."),
    "before its preload file is in place": ("os.rename", r"/gpu-.*/ld\.so\.preload$"),
    "before its record": ("tempfile.mkstemp", r"/gpu-.*/\.record\.json\."),
    "before its record is in place": ("os.rename", r"/gpu-.*/record\.json$"),
    "before the answer": ("answer", ""),
}
HAS_RECORD = "before the answer"
LOOKS = 3
"""When the kubelet looks for a list so often, what hangs on all but the last one has been done."""


def fail(api: ApiServer, pod: Pod) -> None:
    """What the kubelet says of a pod that it did not admit."""
    known = api.pods[pod.namespace, pod.name]
    known["status"]["phase"] = "Failed"
    api.tell("/api/v1/pods", "MODIFIED", known)


def left(node: Node) -> set[str]:
    """All that lies there for allocations. What goes while it is looked at, as it may, is not there."""
    folders = [node.state_dir / "deviceplugin", node.runtime_dir / "clients"]
    walked = [each for folder in folders for each in os.walk(folder)]
    return {os.path.relpath(Path(top, name), node.root) for top, *names in walked for name in chain(*names)}


def records(node: Node) -> list[Path]:
    return list((node.state_dir / "deviceplugin").glob("*/record.json"))


async def killed_while_it_allocates(node: Node, point: str, pod: Pod, **more: str) -> None:
    """Afterwards there is a plugin again, which the kubelet knows."""
    dying = await node.start_plugin(program=(DYING, *POINTS[point]), **more)
    await node.kubelet.until(healthy=200)
    with pytest.raises(AdmissionError):
        await node.kubelet.admit(pod)
    assert await ended(dying) == -signal.SIGKILL
    assert bool(records(node)) == (point == HAS_RECORD)


@pytest.mark.parametrize("point", POINTS)
async def test_a_plugin_that_is_killed_in_an_allocate_leaves_nothing_once_its_pod_has_failed(
    node: Node, api: ApiServer, point: str
) -> None:
    await node.start_manager()
    pod = put(api, Pod("trainer", {"main": 30}))
    await killed_while_it_allocates(node, point, pod, **node.with_api)
    fail(api, pod)
    await node.start_plugin(**node.with_api, metrics_address="127.0.0.1:0")
    await node.kubelet.until(registrations=2, healthy=200)
    await until_true(lambda: not left(node))
    assert "edgeshare_deviceplugin_live_allocations 0.0" in (await node.page("/metrics"))[1]


async def test_of_units_that_nobody_took_nothing_is_left_though_it_is_not_known_for_whom_they_were(
    node: Node, api: ApiServer
) -> None:
    await node.start_manager()
    pod = put(api, Pod("trainer", {"main": 30}))
    running = put(api, Pod("running", {"main": 30}))
    waiting = put(api, Pod("waiting", {"main": 30}))
    api.broken = True
    await killed_while_it_allocates(node, HAS_RECORD, pod, **node.with_api)
    api.broken = False
    fail(api, pod)
    await node.start_plugin(**node.with_api)
    await node.kubelet.until(registrations=2, healthy=200)
    # As far as anybody can tell, these may be for the one or the other.
    await node.kubelet.until_listed(LOOKS)
    assert len(records(node)) == 1
    api.end_pod(waiting.name)
    fail(api, running)
    await until_true(lambda: not left(node))


async def test_a_pod_that_fails_after_its_allocate_leaves_nothing(in_cluster: Node, api: ApiServer) -> None:
    # As where another resource of it is refused.
    pod = put(api, Pod("trainer", {"main": 30}))
    await in_cluster.kubelet.admit(pod)
    in_cluster.kubelet.end(pod)
    in_cluster.kubelet.look()
    fail(api, pod)
    await until_true(lambda: not left(in_cluster))


@pytest.mark.parametrize("known", ["assigned to it", "API server away", "pod of the kubelet's own"])
async def test_between_allocate_and_the_kubelets_list_an_allocation_stands(
    in_cluster: Node, api: ApiServer, known: str
) -> None:
    kubelet = in_cluster.kubelet
    pod = Pod("trainer", {"main": 30})
    if known != "pod of the kubelet's own":
        put(api, pod)
    api.broken = known == "API server away"
    kubelet.may_take_in.clear()
    admitting = asyncio.create_task(kubelet.admit(pod))
    await until_true(lambda: records(in_cluster))
    api.broken = False
    await kubelet.until_listed(LOOKS)
    kubelet.may_take_in.set()
    await admitting
    if pod.name not in [name for _, name in api.pods]:
        put(api, pod)
    await kubelet.start_container(pod, "main")
    assert set(await in_cluster.allocations()) == {"trainer/main"}


async def test_with_no_api_server_an_allocation_stands_while_the_kubelet_takes_it_in(ready: Node) -> None:
    kubelet = ready.kubelet
    kubelet.may_take_in.clear()
    pod = Pod("trainer", {"main": 30})
    admitting = asyncio.create_task(kubelet.admit(pod))
    await until_true(lambda: records(ready))
    await kubelet.until_listed(LOOKS)
    kubelet.may_take_in.set()
    await admitting
    await kubelet.start_container(pod, "main")


async def test_a_list_that_is_older_than_an_allocation_says_nothing_of_it(in_cluster: Node, api: ApiServer) -> None:
    kubelet = in_cluster.kubelet
    for size in (100, 70):
        await kubelet.run(put(api, Pod(f"pod-{size}", {"main": size})))
    kubelet.may_answer_list.clear()
    await kubelet.until_listed(1)
    # One of the kubelet's own, which nobody else knows, and all that is left: no other list is asked for.
    pod = Pod("static", {"main": 30})
    await kubelet.admit(pod)
    kubelet.may_answer_list.set()
    await kubelet.until_listed(LOOKS)
    await kubelet.start_container(put(api, pod), "main")


async def test_while_a_new_kubelet_knows_no_pods_yet_an_allocation_stands_of_which_nobody_was_listed(
    in_cluster: Node, api: ApiServer
) -> None:
    kubelet = in_cluster.kubelet
    await kubelet.stop_listing()
    pod = put(api, Pod("trainer", {"main": 30}))
    await kubelet.admit(pod)
    await in_cluster.stop_plugin(signal.SIGKILL)
    await kubelet.stop()
    held, answers, kubelet.held, kubelet.answers, kubelet.pods = kubelet.held, kubelet.answers, {}, {}, {}
    await kubelet.start()
    await in_cluster.start_plugin(**in_cluster.with_api)
    await kubelet.until(healthy=200)
    await kubelet.until_listed(LOOKS)
    kubelet.pods, kubelet.held, kubelet.answers = {pod.uid: pod}, held, answers
    await kubelet.start_container(pod, "main")


@pytest.mark.parametrize("knows", [True, False])
async def test_an_init_containers_allocation_stands_until_it_starts(
    in_cluster: Node, api: ApiServer, knows: bool
) -> None:
    pods = [
        put(api, pod)
        for pod in (
            Pod("alone", {"main": 0}, init={"fetch": 30}),
            Pod("smaller", {"main": 10}, init={"fetch": 20}),
            Pod("twice", {"main": 0}, init={"fetch": 25, "unpack": 15}),
        )
    ]
    api.broken = not knows
    for pod in pods:
        await in_cluster.kubelet.admit(pod)
    api.broken = False
    before = set(records(in_cluster))
    await in_cluster.kubelet.until_listed(LOOKS)
    assert set(records(in_cluster)) == before
    for pod in pods:
        await in_cluster.kubelet.start_container(pod, "fetch")


async def test_what_was_being_written_when_the_plugin_was_killed_is_gone_after_its_start(
    in_cluster: Node, api: ApiServer
) -> None:
    pod = put(api, Pod("trainer", {"main": 30}))
    await in_cluster.kubelet.run(pod)
    await in_cluster.stop_plugin(signal.SIGKILL)
    before = left(in_cluster)
    (record,) = records(in_cluster)
    unfinished = record.parent / ".record.json.1c8_ag6c"
    unfinished.write_text("{")
    await in_cluster.start_plugin(**in_cluster.with_api)
    await in_cluster.kubelet.until(registrations=2, healthy=200)
    assert left(in_cluster) == before


async def test_a_pod_whose_kubelet_died_over_its_admission_gets_its_gpu_when_the_next_one_admits_it(
    in_cluster: Node, api: ApiServer
) -> None:
    kubelet = in_cluster.kubelet
    pod = assigned(api, Pod("trainer", {"main": 30}), SECOND)
    await kubelet.admit(pod)
    await kubelet.stop()
    kubelet.held, kubelet.answers, kubelet.pods = {}, {}, {}
    await kubelet.start()
    await kubelet.until(healthy=200)
    units = await kubelet.admit(pod)
    assert set(by_device(units["main"])) == {SECOND}
    await kubelet.start_container(pod, "main")
    assert set(await in_cluster.allocations()) == {"trainer/main"}
    assert len(records(in_cluster)) == 1
