"""Units that a kubelet would hand out twice: nobody starts with those of another."""

import asyncio

import pytest

from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import AdmissionError, Pod, StartError, folder_of


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
