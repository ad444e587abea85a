"""An API server that takes calls and does not answer holds up nobody but who needs its answer, and him for one call;
one whose watch tells nothing is asked; one that knows of no node yet is asked for it until it does."""

import asyncio

import grpc
import pytest

from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.kube.kube import CALL_TIMEOUT_S
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as kubelet_api
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import FIRST, SECOND, Node, ended
from tests.kit.kubelet.pod import AdmissionError, Pod, StartError
from tests.kit.kubelet.wishes import assigned, device_of, put
from tests.kit.processes.waiting import until_true

SAFETY_S = 60

Allocating = grpc.aio.UnaryUnaryCall[kubelet_api.AllocateRequest, kubelet_api.AllocateResponse]


async def until_asked(api: ApiServer, what: str) -> None:
    """Waits until somebody waits for an answer about this."""
    await until_true(lambda: any(what in each for each in api.unanswered))


async def test_a_start_that_waits_for_it_is_refused_after_one_call_and_holds_up_no_other(
    in_cluster: Node, api: ApiServer
) -> None:
    kubelet = in_cluster.kubelet
    known, new = (put(api, Pod(name, {"main": 30})) for name in ("known", "new"))
    await kubelet.run(known)
    await kubelet.admit(new)
    api.be_silent(True)
    ends: list[str] = []

    async def start_new() -> None:
        with pytest.raises(StartError, match=f"API server .*{CALL_TIMEOUT_S}"):
            await kubelet.start_container(new, "main")
        ends.append("new")

    starting = asyncio.create_task(start_new())
    await until_asked(api, "GET /api/v1/namespaces/team/pods/new")
    await kubelet.start_container(known, "main")
    ends.append("known")
    await starting
    assert ends == ["known", "new"]
    assert api.unanswered.count("GET /api/v1/namespaces/team/pods/new") == 1
    api.be_silent(False)
    await kubelet.start_container(new, "main")


async def test_a_comparison_that_waits_for_it_holds_up_no_start_and_asks_once(in_cluster: Node, api: ApiServer) -> None:
    kubelet = in_cluster.kubelet
    known, *others = (put(api, Pod(name, {"main": 20})) for name in ("known", "one", "two", "three"))
    for pod in (known, *others):
        await kubelet.run(pod)
    api.be_silent(True)
    for pod in others:
        kubelet.end(pod)
    ends: list[str] = []

    async def wait_for_comparison() -> None:
        await in_cluster.until_said("allocations not compared")
        ends.append("comparison")

    comparing = asyncio.create_task(wait_for_comparison())
    await until_asked(api, "GET /api/v1/namespaces/team/pods/")
    await kubelet.start_container(known, "main")
    ends.append("known")
    await comparing
    assert ends == ["known", "comparison"]
    assert len(await in_cluster.allocations()) == 4
    api.be_silent(False)
    for pod in others:
        api.end_pod(pod.name)
    await in_cluster.until_allocations_are("known/main")


async def test_calls_of_the_kubelet_that_overlap_while_it_is_silent_all_end(in_cluster: Node, api: ApiServer) -> None:
    kubelet = in_cluster.kubelet
    api.hold_back(True)
    api.be_silent(True)
    units = sorted(kubelet.free())
    pod = Pod("trainer", {"main": 30})
    kubelet.pods[pod.uid] = pod
    stub = kubelet.plugin.stub

    def allocate(place: int) -> Allocating:
        return stub.Allocate(
            kubelet_api.AllocateRequest(
                container_requests=[kubelet_api.ContainerAllocateRequest(devices_ids=units[place : place + 10])]
            )
        )

    allocating = [allocate(0)]
    await until_asked(api, "GET /api/v1/pods")
    preferring = []
    for place in (10, 20, 30):
        # Each waited for the other once: a preference for all that are handed out to be, and those for the preference.
        preferring.append(asyncio.create_task(kubelet.prefer(set(units[100:]), set(), 30)))
        await asyncio.sleep(0)
        allocating.append(allocate(place))
    async with asyncio.timeout(SAFETY_S):
        for call in allocating:
            assert len((await call).container_responses) == 1
        for preferred in await asyncio.gather(*preferring):
            assert len(preferred) == 30


async def test_with_many_calls_unanswered_it_ends_at_once(in_cluster: Node, api: ApiServer) -> None:
    kubelet = in_cluster.kubelet
    pods = [put(api, Pod(f"pod-{number}", {"main": 10})) for number in range(12)]
    for pod in pods:
        await kubelet.admit(pod)
    api.be_silent(True)
    starting = [asyncio.create_task(kubelet.start_container(pod, "main")) for pod in pods]
    # All of them at a time: none waits for a thread, of which a machine's processors decide.
    asked = "GET /api/v1/namespaces/team/pods/"
    await until_true(lambda: len({each for each in api.unanswered if asked in each}) >= len(pods))
    assert in_cluster.plugin is not None
    in_cluster.plugin.terminate()
    assert await ended(in_cluster.plugin) == 0
    await asyncio.gather(*starting, return_exceptions=True)


async def test_with_assignments_that_nobody_takes_in_it_ends_at_once(in_cluster: Node, api: ApiServer) -> None:
    # Were each of them waited for, that would take longer than anybody waits here.
    pods = [put(api, Pod(f"pod-{number}", {"main": 5})) for number in range(20)]
    await until_true(api.all_told)
    api.be_silent(True)
    for pod in pods:
        await in_cluster.kubelet.admit(pod)
    await until_asked(api, "PATCH /api/v1/namespaces/team/pods/")
    assert in_cluster.plugin is not None
    in_cluster.plugin.terminate()
    assert await ended(in_cluster.plugin) == 0


async def test_a_watch_that_is_behind_is_made_up_for_by_reading(in_cluster: Node, api: ApiServer) -> None:
    api.hold_back(True)
    pod = assigned(api, Pod("new", {"main": 30}), SECOND)
    assert await device_of(in_cluster, pod) == {SECOND}
    await in_cluster.kubelet.admit(put(api, Pod("fill", {"main": 70})))
    # With no preference asked for, too.
    last = assigned(api, Pod("last", {"main": 100}), SECOND)
    with pytest.raises(AdmissionError, match="team/last/main is assigned"):
        await in_cluster.kubelet.admit(last)


@pytest.mark.parametrize("are_back", [False, True])
async def test_a_pod_of_the_same_name_has_an_assignment_of_its_own(
    in_cluster: Node, api: ApiServer, are_back: bool
) -> None:
    old = assigned(api, Pod("web-0", {"main": 30}), FIRST)
    await in_cluster.kubelet.run(old)
    # The watch still tells of the old one.
    api.hold_back(True)
    api.end_pod("web-0")
    in_cluster.kubelet.end(old)
    if are_back:
        await in_cluster.until_allocations_are()
    new = assigned(api, Pod("web-0", {"main": 30}), SECOND)
    assert await device_of(in_cluster, new) == {SECOND}


async def test_an_accelerator_node_that_is_there_before_its_node_is_known_is_written_with_the_nodes_uid(
    node: Node, api: ApiServer
) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-of-n1"}
    before = {"metadata": {"name": "n1", "ownerReferences": [owner]}, "status": {"deviceCount": 7}}
    api.accelerator_nodes["n1"] = before
    known = api.nodes.pop("n1")
    await node.start_plugin(**node.with_api)
    await node.until_said("the node's AcceleratorNode is not written: the API server has no node n1")
    api.tell(ACCELERATOR_NODES, "MODIFIED", before)
    api.nodes["n1"] = known
    api.tell(ACCELERATOR_NODES, "MODIFIED", before)
    await until_true(lambda: api.accelerator_nodes["n1"]["status"]["deviceCount"] == 2)
    assert api.accelerator_nodes["n1"]["metadata"]["ownerReferences"] == [owner]
