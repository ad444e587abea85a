"""A pod gets the GPU that it was assigned, or fails with the reason; what plugin and cluster part tell each other."""

import itertools
import json
import shutil
import signal

import pytest

from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import FIRST, SECOND, UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod, StartError
from tests.kit.kubelet.wishes import assigned, device_of, put
from tests.kit.processes.waiting import until_true


async def test_equal_pods_get_each_its_own_gpu(in_cluster: Node, api: ApiServer) -> None:
    # In an order unlike that of their binding.
    order = [SECOND, FIRST, FIRST, SECOND, SECOND, FIRST]
    pods = [(assigned(api, Pod(f"pod-{number}", {"main": 10}), gpu), gpu) for number, gpu in enumerate(order)]
    for pod, gpu in reversed(pods):
        answer = (await in_cluster.kubelet.run(pod))["main"]
        assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == gpu
    allocations = await in_cluster.allocations()
    assert {name: each.device_ids[0] for name, each in allocations.items()} == {
        f"{pod.name}/main": gpu for pod, gpu in pods
    }


async def test_pods_that_were_bound_before_the_plugin_started_are_known_however_many(
    node: Node, api: ApiServer
) -> None:
    gpus = [(FIRST, SECOND)[number % 2] for number in range(20)]
    others = [api.put_pod(f"other-{number}", f"uid-of-other-{number}", {}) for number in range(500)]
    pods = [assigned(api, Pod(f"pod-{number}", {"main": 10}), gpu) for number, gpu in enumerate(gpus)]
    await node.start_manager()
    await node.start_plugin(**node.with_api)
    await node.kubelet.until(healthy=200)
    await until_true(api.all_told)
    assert api.pages == [len(others), len(pods)]
    assert [await device_of(node, pod) for pod in pods] == [{gpu} for gpu in gpus]
    # Of none it had to ask.
    assert api.reads == 0


async def test_whole_gpus_are_the_assigned_ones(in_cluster: Node, api: ApiServer) -> None:
    assert await device_of(in_cluster, assigned(api, Pod("one", {"main": 100}), SECOND)) == {SECOND}
    # No preference is asked for here: just as many units are left.
    assert await device_of(in_cluster, assigned(api, Pod("other", {"main": 100}), FIRST)) == {FIRST}


async def test_containers_of_one_pod_can_have_different_gpus(in_cluster: Node, api: ApiServer) -> None:
    pod = Pod("pair", {"one": 30, "two": 30}, init={"fetch": 30})
    put(api, pod, gpu_assignment=json.dumps({"fetch": [SECOND], "one": [SECOND], "two": [FIRST]}))
    await in_cluster.kubelet.run(pod)
    found = {name: each.device_ids[0] for name, each in (await in_cluster.allocations()).items()}
    assert found == {"pair/one": SECOND, "pair/two": FIRST}


async def test_what_a_pod_is_assigned_is_not_given_to_one_that_packs_by_itself(
    in_cluster: Node, api: ApiServer
) -> None:
    later = assigned(api, Pod("later", {"main": 60}), FIRST)
    await until_true(api.all_told)
    assert await device_of(in_cluster, put(api, Pod("free", {"main": 30}))) == {FIRST}
    assert await device_of(in_cluster, put(api, Pod("freer", {"main": 30}))) == {SECOND}
    assert await device_of(in_cluster, put(api, Pod("fill", {"main": 70}))) == {SECOND}
    with pytest.raises(AdmissionError, match="where 60 units are free, they are assigned to pods that are still to be"):
        await in_cluster.kubelet.admit(put(api, Pod("large", {"main": 60})))
    assert await device_of(in_cluster, later) == {FIRST}


async def test_memory_that_a_pod_is_assigned_is_kept_for_it_too(in_cluster: Node, api: ApiServer) -> None:
    later = assigned(api, Pod("later", {"main": 10}), FIRST, memory="15000")
    await until_true(api.all_told)
    assert await device_of(in_cluster, put(api, Pod("free", {"main": 10}), "2000")) == {SECOND}
    assert await device_of(in_cluster, later) == {FIRST}


async def test_a_full_gpu_fails_the_pod_that_is_assigned_it(in_cluster: Node, api: ApiServer) -> None:
    await in_cluster.kubelet.run(assigned(api, Pod("first", {"main": 60}), SECOND))
    text = f"team/second/main is assigned 50 units of GPU {SECOND}, but free are 40 of {SECOND}: make the pod anew"
    with pytest.raises(AdmissionError, match=text):
        await in_cluster.kubelet.admit(assigned(api, Pod("second", {"main": 50}), SECOND))
    big = assigned(api, Pod("big", {"main": 10}), SECOND, memory="9000")
    with pytest.raises(AdmissionError, match=f"team/big/main is assigned GPU {SECOND}, which has only 6400 MiB free"):
        await in_cluster.kubelet.admit(big)
    assert await device_of(in_cluster, assigned(api, Pod("third", {"main": 40}), SECOND)) == {SECOND}


async def test_a_gpu_that_is_not_there_fails_the_pod(in_cluster: Node, api: ApiServer) -> None:
    text = "GPU GPU-gone, which team/odd/main is assigned, is not on this node"
    with pytest.raises(AdmissionError, match=text):
        await in_cluster.kubelet.admit(assigned(api, Pod("odd", {"main": 30}), "GPU-gone"))


async def test_a_gpu_that_is_not_healthy_fails_the_pod(in_cluster: Node, api: ApiServer) -> None:
    in_cluster.machine.inject_xid(UUIDS.index(SECOND), 62)
    await in_cluster.kubelet.until(healthy=100)
    text = f"GPU {SECOND}, which team/odd/main is assigned, is not healthy: XID 62"
    with pytest.raises(AdmissionError, match=text):
        await in_cluster.kubelet.admit(assigned(api, Pod("odd", {"main": 30}), SECOND))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "team/odd/main: annotation edge/gpu-assignment is no JSON: '{': make the pod anew, without it"),
        ('{"other":["GPU-a"]}', "names no GPU for container main"),
        (json.dumps({"main": UUIDS}), "names 2 GPUs for container main, whose 30 units are of 1"),
        ('{"main":["/dev/nvidia0"]}', "names what cannot be a device for container main: '/dev/nvidia0'"),
    ],
)
async def test_a_garbage_assignment_fails_its_pod_and_no_other(
    in_cluster: Node, api: ApiServer, text: str, said: str
) -> None:
    odd = put(api, Pod("odd", {"main": 30}), gpu_assignment=text)
    await in_cluster.kubelet.run(put(api, Pod("before", {"main": 30})))
    with pytest.raises(AdmissionError) as caught:
        await in_cluster.kubelet.admit(odd)
    assert said in str(caught.value)
    await in_cluster.kubelet.run(assigned(api, Pod("after", {"main": 30}), SECOND))
    assert set(await in_cluster.allocations()) == {"before/main", "after/main"}


async def test_units_that_nobody_preferred_are_right_for_the_one_pod_they_can_be_for(
    in_cluster: Node, api: ApiServer
) -> None:
    await in_cluster.kubelet.run(put(api, Pod("whole", {"main": 100})))
    # Just as many are left as are asked for: the kubelet asks for no preference.
    pod = assigned(api, Pod("right", {"main": 100}), SECOND)
    await in_cluster.kubelet.run(pod)
    in_cluster.kubelet.end(pod)
    api.end_pod("right")
    await in_cluster.until_allocations_are("whole/main")
    text = f"team/wrong/main is assigned {FIRST}, but its units would be of {SECOND}: make the pod anew"
    with pytest.raises(AdmissionError, match=text):
        await in_cluster.kubelet.admit(assigned(api, Pod("wrong", {"main": 100}), FIRST))


async def test_of_equal_pods_that_nobody_preferred_for_none_gets_the_other_ones(
    in_cluster: Node, api: ApiServer
) -> None:
    await in_cluster.kubelet.run(put(api, Pod("whole", {"main": 100})))
    one = assigned(api, Pod("one", {"main": 100}), SECOND)
    other = assigned(api, Pod("other", {"main": 100}), FIRST)
    # The kubelet knows both: nothing tells which it means.
    kubelet = in_cluster.kubelet
    kubelet.pods |= {one.uid: one, other.uid: other}
    doubt = "100 units may be for any of team/one/main, team/other/main, which are"
    with pytest.raises(AdmissionError, match=doubt):
        await kubelet.prefer(kubelet.free(), set(), 100)
    # From here on the plugin surely knows both, too.
    with pytest.raises(AdmissionError, match=doubt):
        await kubelet.admit(other)
    # That one has failed for good, so there is no doubt any more.
    assert await device_of(in_cluster, one) == {SECOND}


async def test_a_pod_that_the_kubelet_does_not_know_yet_leaves_no_doubt(in_cluster: Node, api: ApiServer) -> None:
    await in_cluster.kubelet.run(put(api, Pod("whole", {"main": 100})))
    assigned(api, Pod("bound-first", {"main": 100}), FIRST)
    one = assigned(api, Pod("one", {"main": 100}), SECOND)
    # Watches tell in order, and a preference waits for this one: both are known when it is refused, as all is
    # spoken for.
    in_cluster.kubelet.pods[one.uid] = one
    with pytest.raises(AdmissionError):
        await in_cluster.kubelet.prefer(in_cluster.kubelet.free(), set(), 1)
    assert await device_of(in_cluster, one) == {SECOND}


async def test_of_a_pod_the_watch_may_tell_after_another_that_the_kubelet_does_not_know_yet(
    in_cluster: Node, api: ApiServer
) -> None:
    await in_cluster.kubelet.run(put(api, Pod("whole", {"main": 100})))
    assigned(api, Pod("bound-first", {"main": 100}), FIRST)
    await until_true(api.all_told)
    api.hold_back(True)
    one = assigned(api, Pod("one", {"main": 100}), SECOND)
    assert await device_of(in_cluster, one) == {SECOND}


async def test_where_the_kubelet_knows_none_of_the_pods_that_wait_nobody_gets_their_units(
    in_cluster: Node, api: ApiServer
) -> None:
    await in_cluster.kubelet.run(put(api, Pod("whole", {"main": 100})))
    assigned(api, Pod("bound-first", {"main": 100}), SECOND)
    with pytest.raises(AdmissionError, match="no bound pod is known that waits for 100 units"):
        await in_cluster.kubelet.admit(Pod("never-told", {"main": 100}))


async def test_units_assigned_to_another_size_are_not_taken_by_all_that_is_left(
    in_cluster: Node, api: ApiServer
) -> None:
    await in_cluster.kubelet.run(put(api, Pod("whole", {"main": 100})))
    assigned(api, Pod("later", {"main": 40}), SECOND)
    text = f"40 units of GPU {SECOND} are assigned to pods that are still to be admitted"
    with pytest.raises(AdmissionError, match=text):
        await in_cluster.kubelet.admit(put(api, Pod("early", {"main": 100})))


async def test_a_pod_admitted_unseen_does_not_start_on_another_gpu_than_its_own(
    in_cluster: Node, api: ApiServer
) -> None:
    api.hold_back(True)
    api.broken = True
    wrong = assigned(api, Pod("wrong", {"main": 30}), SECOND)
    right = assigned(api, Pod("right", {"main": 30}), FIRST)
    for pod in (wrong, right):
        assert await device_of(in_cluster, pod) == {FIRST}
    api.broken = False
    await in_cluster.kubelet.start_container(right, "main")
    with pytest.raises(StartError, match=f"team/wrong/main is assigned {SECOND}, but its units would be of {FIRST}"):
        await in_cluster.kubelet.start_container(wrong, "main")
    assert set(await in_cluster.allocations()) == {"right/main"}


async def test_an_edited_assignment_changes_nothing_and_is_said_once(in_cluster: Node, api: ApiServer) -> None:
    pod = assigned(api, Pod("trainer", {"main": 30}), SECOND)
    await in_cluster.kubelet.admit(put(api, Pod("other", {"main": 30})))
    assigned(api, pod, FIRST)
    await until_true(lambda: api.events)
    answer = (await in_cluster.kubelet.run(pod))["main"]
    assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == SECOND
    (event,) = api.events
    assert (event["type"], event["reason"]) == ("Warning", "AssignmentEdited")
    assert event["involvedObject"]["uid"] == pod.uid
    assert "was edited (it was bound with" in event["message"]


async def test_without_a_cluster_part_the_plugin_writes_what_it_chose(in_cluster: Node, api: ApiServer) -> None:
    pod = put(api, Pod("staged", {"main": 30, "side": 40, "plain": 0}, init={"fetch": 50}))
    await in_cluster.kubelet.run(pod)
    await until_true(lambda: "edge/gpu-assignment" in api.pods["team", "staged"]["metadata"]["annotations"])
    text = api.pods["team", "staged"]["metadata"]["annotations"]["edge/gpu-assignment"]
    found = json.loads(text)
    # Compact, and each container's.
    assert text == json.dumps(found, separators=(",", ":"), sort_keys=True)
    devices = {name: each.device_ids for name, each in (await in_cluster.allocations()).items()}
    assert found["main"] == found["fetch"] == list(devices["staged/main"])
    assert found["side"] == list(devices["staged/side"])
    assert api.events == []


async def test_an_assignment_that_cannot_be_written_holds_up_nobody(in_cluster: Node, api: ApiServer) -> None:
    api.no_annotations = True
    for number in range(3):
        await in_cluster.kubelet.run(put(api, Pod(f"pod-{number}", {"main": 30})))
    await in_cluster.until_said("assignments are not written: the API server refuses PATCH")
    api.no_annotations = False
    # Any change is an occasion to try again.
    await in_cluster.kubelet.run(put(api, Pod("last", {"main": 30})))
    await until_true(lambda: all(pod["metadata"]["annotations"] for pod in api.pods.values()))


async def test_a_storm_of_equal_pods_over_restarts_puts_none_on_another_gpu_than_its_own(
    in_cluster: Node, api: ApiServer
) -> None:
    devices = itertools.cycle([FIRST, SECOND, SECOND, FIRST, SECOND])
    live: list[Pod] = []
    for number in range(40):
        gpu = next(devices)
        pod = assigned(api, Pod(f"pod-{number}", {"main": 20}), gpu)
        try:
            assert await device_of(in_cluster, pod) == {gpu}
        except AdmissionError:
            assert number > 5
        else:
            await in_cluster.kubelet.start_container(pod, "main")
            live.append(pod)
        if number % 3 == 2:
            over = live.pop(number % len(live))
            in_cluster.kubelet.end(over)
            api.end_pod(over.name)
        if number % 20 == 10:
            await in_cluster.stop_plugin(signal.SIGKILL)
            if number > 20:
                shutil.rmtree(in_cluster.state_dir)
            registrations = len(in_cluster.kubelet.registrations) + 1
            await in_cluster.start_plugin(**in_cluster.with_api)
            await in_cluster.kubelet.until(registrations=registrations, healthy=200)
