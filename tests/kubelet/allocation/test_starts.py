"""What is checked and told before a container starts, and found again by those that start again."""

import signal
from pathlib import Path

import pytest

from deviceplugin.kubelet.service import REFUSALS_BURST
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import Pod, StartError, folder_of


async def test_a_container_that_starts_again_keeps_its_allocation(ready: Node) -> None:
    pod = Pod("trainer", {"main": 50})
    first = await ready.kubelet.run(pod)
    before = await ready.allocations()
    assert await ready.kubelet.start_container(pod, "main") == first["main"]
    assert await ready.allocations() == before


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


async def test_units_that_were_never_handed_out_do_not_start(ready: Node) -> None:
    with pytest.raises(StartError, match="were not handed out here, or the record of it is lost"):
        await ready.kubelet.pre_start(frozenset({f"{UUIDS[0]}::00"}))


async def test_refusals_without_end_are_said_now_and_then(ready: Node) -> None:
    for _ in range(REFUSALS_BURST + 10):
        with pytest.raises(StartError, match="were not handed out here"):
            await ready.kubelet.pre_start(frozenset({f"{UUIDS[0]}::00"}))
    lines = ready.plugin_log.read_text().splitlines()
    assert sum("refused: these units were not handed out here" in line for line in lines) == REFUSALS_BURST


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
