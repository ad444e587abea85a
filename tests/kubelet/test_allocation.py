"""Units handed out, checked, started and taken back."""

import asyncio
import itertools
import shutil
import signal
from pathlib import Path

import grpc
import pytest

from deviceplugin.pods.podresources import InFlight, Listings
from edgeshare.kubelet.podresources import PodResources
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod, StartError

SAFETY_S = 30


def devices_of(units: frozenset[str]) -> set[str]:
    return {unit.partition("::")[0] for unit in units}


def folder_of(answer: api.ContainerAllocateResponse) -> str:
    """The allocation's id: the last part of the mounted socket folder's path."""
    (mount,) = [mount for mount in answer.mounts if mount.container_path == "/run/edgeshare"]
    return mount.host_path.rpartition("/")[2]


async def test_three_pods_share_one_gpu_and_the_manager_knows_whose_they_are(ready: Node) -> None:
    answers = {size: await ready.kubelet.run(Pod(f"pod-{size}", {"main": size})) for size in (50, 30, 20)}
    allocations = await ready.allocations()
    assert {each.owner.pod: each.request_percent for each in allocations.values()} == {
        "pod-50": 50,
        "pod-30": 30,
        "pod-20": 20,
    }
    assert {tuple(each.device_ids) for each in allocations.values()} == {(UUIDS[0],)}
    for size, answer in answers.items():
        assert answer["main"].envs["NVIDIA_VISIBLE_DEVICES"] == UUIDS[0]
        assert folder_of(answer["main"]) == allocations[f"pod-{size}/main"].id
    assert (allocations["pod-50/main"].owner.namespace, allocations["pod-50/main"].limit_percent) == ("team", 100)


async def test_a_part_never_straddles_two_gpus(ready: Node) -> None:
    sizes = [60, 60, 30, 30, 10, 10]
    for number, size in enumerate(sizes):
        units = await ready.kubelet.admit(Pod(f"pod-{number}", {"main": size}))
        assert len(devices_of(units["main"])) == 1
    assert ready.kubelet.free() == set()


async def test_a_part_that_fits_on_no_single_gpu_is_refused_with_the_reason(ready: Node) -> None:
    for name in ("a", "b"):
        await ready.kubelet.run(Pod(name, {"main": 60}))
    with pytest.raises(AdmissionError, match="no single GPU has 50 of 100 units free"):
        await ready.kubelet.run(Pod("c", {"main": 50}))
    await ready.kubelet.run(Pod("d", {"main": 40}))


async def test_a_part_of_all_that_is_left_on_two_gpus_is_refused_though_nobody_asked_for_a_preference(
    ready: Node,
) -> None:
    for name in ("a", "b"):
        await ready.kubelet.run(Pod(name, {"main": 60}))
    # Just as many units are left as are asked for: the kubelet then asks for no preference.
    with pytest.raises(AdmissionError, match="no single GPU has 80 of 100 units free"):
        await ready.kubelet.run(Pod("c", {"main": 80}))


async def test_a_whole_gpu_is_not_shared(ready: Node) -> None:
    pods = {size: Pod(f"part-{size}", {"main": size}) for size in (80, 30, 20)}
    for pod in pods.values():
        await ready.kubelet.run(pod)
    ready.kubelet.end(pods[80])
    with pytest.raises(AdmissionError, match="1 whole GPUs, but fewer are wholly free"):
        await ready.kubelet.admit(Pod("whole", {"main": 100}))
    ready.kubelet.end(pods[20])
    units = await ready.kubelet.admit(Pod("whole", {"main": 100}))
    assert len(devices_of(units["main"])) == 1


async def test_two_whole_gpus_are_told_to_the_manager_as_such(ready: Node) -> None:
    answers = await ready.kubelet.run(Pod("both", {"main": 200}))
    allocation = (await ready.allocations())["both/main"]
    assert sorted(allocation.device_ids) == sorted(UUIDS)
    assert allocation.request_percent == 100
    assert answers["main"].envs["NVIDIA_VISIBLE_DEVICES"] == ",".join(UUIDS)


@pytest.mark.parametrize("size", [130, 101, 199])
async def test_a_wrong_percent_is_refused_with_what_can_be_asked_for(ready: Node, size: int) -> None:
    with pytest.raises(AdmissionError, match=f"{size} percent cannot be granted: ask for 1 to 99"):
        await ready.kubelet.run(Pod("odd", {"main": size}))
    assert await ready.allocations() == {}
    assert len(ready.kubelet.free()) == 200


async def test_a_container_that_starts_again_keeps_its_allocation(ready: Node) -> None:
    pod = Pod("trainer", {"main": 50})
    first = await ready.kubelet.run(pod)
    before = await ready.allocations()
    assert await ready.kubelet.start_container(pod, "main") == first["main"]
    assert await ready.allocations() == before


async def test_containers_of_one_pod_have_allocations_of_their_own(ready: Node) -> None:
    await ready.kubelet.run(Pod("pair", {"one": 30, "two": 30, "plain": 0}))
    allocations = await ready.allocations()
    assert set(allocations) == {"pair/one", "pair/two"}
    assert len({each.id for each in allocations.values()}) == 2


async def test_what_ended_pods_had_is_handed_out_again_at_once(ready: Node) -> None:
    pods = [Pod(f"old-{number}", {"main": 50}) for number in range(4)]
    for pod in pods:
        await ready.kubelet.run(pod)
    for pod in pods:
        ready.kubelet.end(pod)
    await ready.kubelet.run(Pod("new", {"main": 200}))
    assert set(await ready.allocations()) == {"new/main"}


async def test_all_that_is_left_may_be_what_an_ended_pod_had(ready: Node) -> None:
    # No preference is asked for then, so that only Allocate can find out that the pod is over.
    old = Pod("old", {"main": 100})
    await ready.kubelet.run(Pod("other", {"main": 100}))
    await ready.kubelet.run(old)
    ready.kubelet.end(old)
    await ready.kubelet.run(Pod("new", {"main": 100}))
    assert set(await ready.allocations()) == {"other/main", "new/main"}


async def test_what_a_pod_got_that_failed_at_its_admission_leaves_nothing_behind(ready: Node) -> None:
    with pytest.raises(AdmissionError, match="130 percent"):
        await ready.kubelet.admit(Pod("odd", {"one": 30, "two": 130}))
    (record,) = (ready.state_dir / "deviceplugin").iterdir()
    await ready.kubelet.run(Pod("next", {"main": 50}))
    assert not record.exists()
    assert len(list((ready.state_dir / "deviceplugin").iterdir())) == 1


async def test_files_that_went_missing_are_there_again_when_a_container_starts(ready: Node) -> None:
    pod = Pod("trainer", {"main": 50})
    answer = (await ready.kubelet.run(pod))["main"]
    files = [Path(mount.host_path) for mount in answer.mounts if mount.container_path != "/run/edgeshare"]
    before = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()
        file.mkdir()  # as a container runtime does
    await ready.kubelet.start_container(pod, "main")
    assert [file.read_bytes() for file in files] == before


async def test_a_pod_of_the_same_name_gets_an_allocation_of_its_own(ready: Node) -> None:
    old = Pod("web-0", {"main": 100})
    before = await ready.kubelet.run(old)
    ready.kubelet.end(old)
    after = await ready.kubelet.run(Pod("web-0", {"main": 100}))
    assert folder_of(before["main"]) != folder_of(after["main"])
    assert (await ready.until_allocations_are("web-0/main"))["web-0/main"].id == folder_of(after["main"])


async def test_units_that_the_kubelet_forgot_are_not_handed_out_twice(ready: Node) -> None:
    first = (await ready.kubelet.admit(Pod("first", {"main": 40})))["main"]
    ready.kubelet.forget(first)
    second = (await ready.kubelet.admit(Pod("second", {"main": 40})))["main"]
    assert not first & second


async def test_forgotten_units_are_refused_where_nothing_else_is_left(ready: Node) -> None:
    pods = [Pod(f"pod-{number}", {"main": 100}) for number in range(2)]
    for pod in pods:
        await ready.kubelet.run(pod)
    forgotten = ready.kubelet.held[pods[0].uid, "main"]
    ready.kubelet.forget(forgotten)
    with pytest.raises(AdmissionError, match=r"100 of these units, .* are held by team/pod-0/main"):
        await ready.kubelet.admit(Pod("third", {"main": 100}))
    # The kubelet has put its map right, as a failed Allocate makes it do.
    assert not forgotten & ready.kubelet.free()


async def test_the_same_units_given_to_two_pods_start_neither_of_them(ready: Node) -> None:
    # Before anything was started, the plugin cannot know at Allocate. It does before a container starts.
    await ready.kubelet.stop_listing()
    pods = [Pod("first", {"main": 100}), Pod("second", {"main": 200})]
    units = (await ready.kubelet.admit(pods[0]))["main"]
    ready.kubelet.forget(units)
    await ready.kubelet.admit(pods[1])
    await ready.kubelet.listen_again()
    for pod in pods:
        with pytest.raises(StartError, match="gave the same units to team/first/main and team/second/main"):
            await ready.kubelet.start_container(pod, "main")
    assert await ready.allocations() == {}


async def test_a_kubelet_that_calls_twice_at_once_gets_two_answers_and_no_unit_twice(ready: Node) -> None:
    units = sorted(ready.kubelet.free())[:60]
    requests = [
        api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=each)])
        for each in (units[:40], units[20:])
    ]
    answers = await asyncio.gather(*(ready.kubelet.plugin.stub.Allocate(each) for each in requests))
    assert len({folder_of(answer.container_responses[0]) for answer in answers}) == 2
    # Neither has an owner that the kubelet lists: neither may start.
    for each in (units[:40], units[20:]):
        with pytest.raises(StartError, match="the kubelet lists nobody with these 40 units"):
            await ready.kubelet.pre_start(frozenset(each))


async def test_units_that_were_never_handed_out_do_not_start(ready: Node) -> None:
    with pytest.raises(StartError, match="were not handed out here, or the record of it is lost"):
        await ready.kubelet.pre_start(frozenset({f"{UUIDS[0]}::00"}))


async def test_an_init_container_and_the_next_one_share_their_allocation(ready: Node) -> None:
    pod = Pod("staged", {"main": 30}, init={"fetch": 30})
    answers = await ready.kubelet.run(pod)
    assert folder_of(answers["fetch"]) == folder_of(answers["main"])
    assert set(await ready.allocations()) == {"staged/main"}


@pytest.mark.parametrize(("init", "main"), [(50, 20), (20, 50), (100, 200)])
async def test_what_an_init_container_had_counts_no_more_when_the_next_one_starts(
    ready: Node, init: int, main: int
) -> None:
    pod = Pod("staged", {"main": main}, init={"fetch": init})
    await ready.kubelet.admit(pod)
    await ready.kubelet.start_container(pod, "fetch")
    (fetch,) = (await ready.allocations()).values()
    assert (fetch.owner.pod, fetch.request_percent * len(fetch.device_ids)) == ("staged", init)
    await ready.kubelet.start_container(pod, "main")
    assert set(await ready.allocations()) == {"staged/main"}
    # After a new sandbox, all of them run again.
    await ready.kubelet.start_container(pod, "fetch")
    await ready.kubelet.start_container(pod, "main")
    assert set(await ready.allocations()) == {"staged/main"}


async def test_no_container_starts_without_a_manager_and_all_do_with_one(node: Node) -> None:
    await node.start_plugin()
    await node.kubelet.until(healthy=200)
    pod = Pod("early", {"main": 50})
    await node.kubelet.admit(pod)
    with pytest.raises(StartError, match=r"share manager does not answer at .*allocations.sock: containers start as"):
        await node.kubelet.start_container(pod, "main")
    await node.start_manager()
    await node.kubelet.start_container(pod, "main")
    assert set(await node.allocations()) == {"early/main"}


async def test_a_start_after_a_restart_of_plugin_or_manager_finds_what_was_handed_out(ready: Node) -> None:
    admitted, started = Pod("admitted", {"main": 30}), Pod("started", {"main": 30})
    answers = await ready.kubelet.run(started)
    await ready.kubelet.admit(admitted)
    await ready.stop_plugin(signal.SIGKILL)
    await ready.stop_manager()
    await ready.start_manager()
    await ready.start_plugin()
    await ready.kubelet.until(registrations=2, healthy=200)
    for pod in (admitted, started):
        await ready.kubelet.start_container(pod, "main")
    allocations = await ready.allocations()
    assert set(allocations) == {"admitted/main", "started/main"}
    assert allocations["started/main"].id == folder_of(answers["main"])


async def test_a_manager_with_other_defaults_takes_a_container_that_starts_again(ready: Node) -> None:
    pod = Pod("trainer", {"main": 30})
    await ready.kubelet.run(pod)
    before = await ready.allocations()
    await ready.stop_manager()
    await ready.start_manager(default_limit="request")
    await ready.kubelet.start_container(pod, "main")
    assert await ready.allocations() == before


async def test_a_busy_kubelet_is_asked_again(ready: Node) -> None:
    ready.kubelet.refuse_lists = 2
    await ready.kubelet.run(Pod("trainer", {"main": 30}))
    assert ready.kubelet.refuse_lists == 0


async def test_a_kubelet_that_tells_of_no_single_pod_is_asked_for_all(ready: Node) -> None:
    ready.kubelet.get_is_off = True
    pod = Pod("trainer", {"main": 100})
    await ready.kubelet.run(pod)
    await ready.kubelet.start_container(pod, "main")
    await ready.kubelet.run(Pod("other", {"main": 100}))
    # With nothing else to go by, what was handed out counts as held.
    ready.kubelet.end(pod)
    with pytest.raises(AdmissionError, match="are held by team/trainer/main"):
        await ready.kubelet.admit(Pod("next", {"main": 100}))


async def test_no_list_is_asked_for_while_units_are_being_handed_out(node: Node) -> None:
    listings = Listings(PodResources(node.kubelet.resources_socket, "edge/gpu-percent"), InFlight())
    with listings.allocating():
        with listings.allocating():
            listing = asyncio.create_task(listings.list())
        done, _ = await asyncio.wait([listing], timeout=0.5)
        assert not done
        assert await listings.get("team", "nobody") is None
    async with asyncio.timeout(SAFETY_S):
        assert await listing == {}


async def test_a_lost_state_is_made_anew_from_what_kubelet_and_manager_know(ready: Node) -> None:
    pod = Pod("trainer", {"main": 30})
    answers = await ready.kubelet.run(pod)
    await ready.stop_plugin(signal.SIGTERM)
    shutil.rmtree(ready.state_dir)
    await ready.start_plugin()
    await ready.until_said("was lost: made anew")
    await ready.kubelet.until(registrations=2, healthy=200)
    await ready.kubelet.start_container(pod, "main")
    assert (await ready.allocations())["trainer/main"].id == folder_of(answers["main"])
    second = (await ready.kubelet.admit(Pod("second", {"main": 30})))["main"]
    assert not second & ready.kubelet.held[pod.uid, "main"]


async def test_what_cannot_be_made_anew_is_refused_with_what_to_do(ready: Node) -> None:
    pod = Pod("trainer", {"main": 30})
    await ready.kubelet.admit(pod)
    await ready.stop_plugin(signal.SIGTERM)
    shutil.rmtree(ready.state_dir)
    await ready.start_plugin()
    await ready.kubelet.until(registrations=2, healthy=200)
    with pytest.raises(StartError, match="make the pod anew"):
        await ready.kubelet.start_container(pod, "main")


async def test_after_a_reboot_containers_find_all_that_they_mount(ready: Node) -> None:
    pod = Pod("trainer", {"main": 30})
    await ready.kubelet.run(pod)
    await ready.stop_plugin(signal.SIGKILL)
    await ready.stop_manager()
    shutil.rmtree(ready.runtime_dir)
    await ready.start_manager()
    await ready.start_plugin()
    await ready.kubelet.until(registrations=2, healthy=200)
    answer = await ready.kubelet.start_container(pod, "main")
    folder = ready.runtime_dir / "clients" / folder_of(answer)
    assert (folder / "hook.sock").is_socket()
    assert {mount.host_path for mount in answer.mounts} >= {str(folder)}


async def test_a_gpu_that_fails_keeps_its_units_from_being_handed_out(ready: Node) -> None:
    held = sorted(ready.kubelet.free())[:10]
    ready.machine.inject_xid(UUIDS.index(held[0].partition("::")[0]), 62)
    await ready.kubelet.until(healthy=100)
    with pytest.raises(grpc.aio.AioRpcError, match="is not healthy: XID 62"):
        await ready.kubelet.plugin.stub.Allocate(
            api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=held)])
        )


async def test_a_storm_of_pods_never_puts_a_unit_into_two_hands(ready: Node) -> None:
    sizes = itertools.cycle([10, 25, 50, 100, 5, 40])
    live: list[Pod] = []
    refused = 0
    for number in range(60):
        pod = Pod(f"pod-{number}", {"main": next(sizes)})
        try:
            await ready.kubelet.run(pod)
        except AdmissionError:
            refused += 1
        else:
            live.append(pod)
        held = [unit for pod in live for unit in ready.kubelet.held[pod.uid, "main"]]
        assert len(held) == len(set(held))
        if number % 3 == 2:
            ready.kubelet.end(live.pop(number % len(live)))
    assert refused < 60
    for pod in live:
        ready.kubelet.end(pod)
    await ready.kubelet.run(Pod("last", {"main": 200}))
    assert set(await ready.allocations()) == {"last/main"}
