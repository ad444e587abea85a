"""Units that ended pods had are handed out again, to allocations of their own."""

import pytest

from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import AdmissionError, Pod, folder_of


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


async def test_a_pod_of_the_same_name_gets_an_allocation_of_its_own(ready: Node) -> None:
    old = Pod("web-0", {"main": 100})
    before = await ready.kubelet.run(old)
    ready.kubelet.end(old)
    after = await ready.kubelet.run(Pod("web-0", {"main": 100}))
    assert folder_of(before["main"]) != folder_of(after["main"])
    assert (await ready.until_allocations_are("web-0/main"))["web-0/main"].id == folder_of(after["main"])
