"""Units handed out: to parts of one GPU and to whole ones, and refused with the reason."""

import itertools

import grpc
import pytest

from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod, folder_of


def devices_of(units: frozenset[str]) -> set[str]:
    return {unit.partition("::")[0] for unit in units}


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


async def test_containers_of_one_pod_have_allocations_of_their_own(ready: Node) -> None:
    await ready.kubelet.run(Pod("pair", {"one": 30, "two": 30, "plain": 0}))
    allocations = await ready.allocations()
    assert set(allocations) == {"pair/one", "pair/two"}
    assert len({each.id for each in allocations.values()}) == 2


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
