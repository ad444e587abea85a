"""An allocation lasts as long as its pod or a client of it, whatever a kubelet offers that lost its checkpoint."""

import asyncio
import shutil
import signal
from pathlib import Path

import pytest

from deviceplugin.units.preference import by_device
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod
from tests.kit.kubelet.wishes import device_of, put

SAFETY_S = 60


@pytest.mark.parametrize("lists_pods", [True, False], ids=["pods without units", "no pods"])
async def test_no_other_pod_gets_the_units_of_one_that_is_there(
    in_cluster: Node, api: ApiServer, lists_pods: bool
) -> None:
    kubelet = in_cluster.kubelet
    first = put(api, Pod("first", {"main": 60}))
    answer = (await kubelet.run(first))["main"]
    (device,) = by_device(kubelet.held[first.uid, "main"])
    await kubelet.lose_checkpoint(lists_pods=lists_pods)
    second = put(api, Pod("second", {"main": 60}))
    assert await device_of(in_cluster, second) != {device}
    await kubelet.start_container(second, "main")
    with pytest.raises(AdmissionError, match="no single GPU has 60 of 100 units free"):
        await kubelet.admit(put(api, Pod("third", {"main": 60})))
    allocations = await in_cluster.allocations()
    assert set(allocations) == {"first/main", "second/main"}
    assert allocations["first/main"].id in {Path(mount.host_path).name for mount in answer.mounts}
    kubelet.pods.pop(first.uid, None)
    api.end_pod("first")
    assert await device_of(in_cluster, put(api, Pod("fourth", {"main": 60}))) == {device}


async def test_all_that_is_offered_is_not_given_away_where_a_pod_has_some_of_it(
    in_cluster: Node, api: ApiServer
) -> None:
    # With just as many units left the kubelet asks for no preference.
    kubelet = in_cluster.kubelet
    await kubelet.run(put(api, Pod("first", {"main": 60})))
    await kubelet.lose_checkpoint()
    with pytest.raises(AdmissionError, match="are held by team/first/main"):
        await kubelet.admit(put(api, Pod("second", {"main": 200})))
    assert set(await in_cluster.allocations()) == {"first/main"}


async def test_no_other_pod_gets_the_units_of_an_init_container_that_runs(in_cluster: Node, api: ApiServer) -> None:
    kubelet = in_cluster.kubelet
    first = put(api, Pod("first", {"main": 0}, init={"fetch": 60}))
    await kubelet.admit(first)
    (device,) = by_device(kubelet.held[first.uid, "fetch"])
    await kubelet.start_container(first, "fetch")
    await kubelet.lose_checkpoint()
    assert await device_of(in_cluster, put(api, Pod("second", {"main": 60}))) != {device}
    assert set(await in_cluster.allocations()) == {"first/fetch"}


@pytest.mark.parametrize("init", [False, True])
@pytest.mark.parametrize("size", [60, 200])
async def test_while_the_api_server_is_away_none_gets_the_units_of_one_that_may_be_there(
    in_cluster: Node, api: ApiServer, init: bool, size: int
) -> None:
    kubelet = in_cluster.kubelet
    first = put(api, Pod("first", {"main": 0}, init={"it": 60}) if init else Pod("first", {"it": 60}))
    second = put(api, Pod("second", {"main": size}))
    await kubelet.run(first)
    (device,) = by_device(kubelet.held[first.uid, "it"])
    api.broken = True
    await kubelet.lose_checkpoint()
    if size == 60:
        assert await device_of(in_cluster, second) != {device}
    else:
        with pytest.raises(AdmissionError, match="are held by team/first/it"):
            await kubelet.admit(second)
    assert set(await in_cluster.allocations()) == {"first/it"}


async def test_a_pod_that_only_the_kubelet_knows_is_not_taken_for_one_that_starts_again(
    in_cluster: Node, api: ApiServer
) -> None:
    # As a static pod whose mirror is still to come.
    kubelet = in_cluster.kubelet
    first = put(api, Pod("first", {"main": 60}))
    await kubelet.run(first)
    (device,) = by_device(kubelet.held[first.uid, "main"])
    await kubelet.lose_checkpoint()
    assert await device_of(in_cluster, Pod("static", {"main": 60})) != {device}


@pytest.mark.parametrize("size", [60, 100], ids=["preferred", "all that is left"])
async def test_a_container_that_starts_again_gets_back_what_it_had(in_cluster: Node, api: ApiServer, size: int) -> None:
    kubelet = in_cluster.kubelet
    other, pod = (put(api, Pod(name, {"main": size})) for name in ("other", "trainer"))
    for each in (other, pod):
        await kubelet.run(each)
    units, before = kubelet.held[pod.uid, "main"], await in_cluster.allocations()
    await kubelet.lose_checkpoint(other)
    answer = (await kubelet.run(pod))["main"]
    assert kubelet.held[pod.uid, "main"] == units
    assert await in_cluster.allocations() == before
    assert before["trainer/main"].id in {Path(mount.host_path).name for mount in answer.mounts}


async def test_what_a_container_had_before_it_got_others_is_over(in_cluster: Node, api: ApiServer) -> None:
    kubelet = in_cluster.kubelet
    # With its assignment written down it would be kept to the GPU that it had.
    api.no_annotations = True
    pod = put(api, Pod("trainer", {"main": 60}))
    await kubelet.run(pod)
    (before,) = (await in_cluster.allocations()).values()
    (device,) = by_device(kubelet.held[pod.uid, "main"])
    in_cluster.machine.inject_xid(UUIDS.index(device), 62)
    await kubelet.until(healthy=100)
    await kubelet.lose_checkpoint(healthy=100)
    assert await device_of(in_cluster, pod) != {device}
    await kubelet.start_container(pod, "main")
    async with asyncio.timeout(SAFETY_S):
        while before.id in {each.id for each in await in_cluster.allocations_of("trainer")}:  # noqa: ASYNC110 - no change
            await asyncio.sleep(0.05)
    assert len(await in_cluster.allocations_of("trainer")) == 1


async def test_without_an_api_server_none_gets_the_units_of_one_that_has_clients(ready: Node) -> None:
    kubelet = ready.kubelet
    first = Pod("first", {"main": 60})
    answer = (await kubelet.run(first))["main"]
    (device,) = by_device(kubelet.held[first.uid, "main"])
    async with ready.client(answer):
        await kubelet.lose_checkpoint(lists_pods=False)
        assert await device_of(ready, Pod("second", {"main": 60})) != {device}
        with pytest.raises(AdmissionError, match="no single GPU has 60 of 100 units free"):
            await kubelet.admit(Pod("third", {"main": 60}))


async def test_none_gets_the_units_of_a_pod_that_is_gone_but_has_clients(in_cluster: Node, api: ApiServer) -> None:
    # As of one that was deleted by force.
    kubelet = in_cluster.kubelet
    first = put(api, Pod("first", {"main": 60}))
    answer = (await kubelet.run(first))["main"]
    (device,) = by_device(kubelet.held[first.uid, "main"])
    async with in_cluster.client(answer):
        kubelet.end(first)
        api.end_pod("first")
        assert await device_of(in_cluster, put(api, Pod("second", {"main": 60}))) != {device}


async def test_one_whose_record_is_lost_and_whose_pod_is_gone_lasts_as_long_as_its_clients(
    in_cluster: Node, api: ApiServer
) -> None:
    kubelet = in_cluster.kubelet
    # The manager lists them in this order, in which the plugin looks at them.
    first, idle = put(api, Pod("first", {"main": 60})), put(api, Pod("idle", {"main": 60}))
    answer = (await kubelet.run(first))["main"]
    await kubelet.run(idle)
    async with in_cluster.client(answer):
        await in_cluster.stop_plugin(signal.SIGTERM)
        shutil.rmtree(in_cluster.state_dir)
        for pod in (first, idle):
            kubelet.end(pod)
            api.end_pod(pod.name)
        await in_cluster.start_plugin(**in_cluster.with_api)
        await in_cluster.until_allocations_are("first/main")
        assert "team/first/main is over" not in in_cluster.plugin_log.read_text()
    # Where the plugin knows of no allocation it seldom compares.
    await kubelet.until(registrations=2, healthy=200)
    await kubelet.run(put(api, Pod("next", {"main": 30})))
    await in_cluster.until_allocations_are("next/main")
