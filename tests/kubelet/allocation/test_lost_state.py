"""Allocations whose files are lost, or whose node was booted anew."""

import shutil
import signal

import pytest

from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import Pod, StartError, folder_of


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
