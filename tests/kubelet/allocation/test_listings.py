"""What the kubelet is asked of its pods: again, all at once, and when not."""

import asyncio

import pytest

from deviceplugin.pods.podresources import InFlight, Listings
from edgeshare.kubelet.podresources import PodResources
from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import AdmissionError, Pod

SAFETY_S = 30


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
