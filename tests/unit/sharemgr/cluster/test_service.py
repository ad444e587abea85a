"""What the service says of what it is told."""

import json
import logging
from collections.abc import Callable

import pytest

from sharemgr.cluster.service import FAULTS_BURST, Faults
from sharemgr.cluster.state.books import AcceleratorNode, Books, Listed
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Take

Saying = Callable[[], list[str]]


def pod(name: str, uid: str, percent: int, *gpus: str) -> SharePod:
    """Bound to node n, and assigned these GPUs where there are any."""
    metadata: dict[str, object] = {"uid": uid, "namespace": "team", "name": name}
    if gpus:
        metadata["annotations"] = {"edge/gpu-assignment": json.dumps({"main": gpus})}
    limits = {"resources": {"limits": {"edge/gpu-percent": str(percent)}}, "name": "main"}
    return parse_pod({"metadata": metadata, "spec": {"nodeName": "n", "containers": [limits]}})


@pytest.fixture
def books() -> Books:
    return Books()


@pytest.fixture
def said(books: Books, caplog: pytest.LogCaptureFixture) -> Saying:
    """What is newly said of the books."""
    faults = Faults(books)

    def say() -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            faults.say()
        return caplog.messages

    return say


def test_a_fault_is_said_once_and_again_when_it_is_back(books: Books, said: Saying) -> None:
    stray = pod("stray", "u", 40)
    assert said() == []
    books.pod_seen(stray)
    books.node_told(AcceleratorNode(Inventory("n", ()), fault="AcceleratorNode n: nonsense"))
    assert said() == [
        "AcceleratorNode n: nonsense",
        "team/stray: pod team/stray is bound to node n without annotation edge/gpu-assignment",
    ]
    assert said() == []
    books.pod_gone("u")
    assert said() == []
    books.pod_seen(stray)
    assert said() == ["team/stray: pod team/stray is bound to node n without annotation edge/gpu-assignment"]


def test_a_gpu_that_is_overcommitted_is_named_with_those_who_hold_it(books: Books, said: Saying) -> None:
    inventory = Inventory("n", (Device("g", "T4", 1000), Device("h", "T4", 1000)))
    books.node_told(AcceleratorNode(inventory))
    books.pod_seen(pod("one", "1", 70, "g"))
    books.pod_seen(pod("elsewhere", "2", 70, "h"))
    assert said() == []
    books.pod_seen(pod("other", "3", 40, "g"))
    assert said() == ["node n: pods team/one, team/other hold more of GPU g than there is of it"]
    assert said() == []
    books.pod_gone("3")
    assert said() == []
    books.node_told(AcceleratorNode(inventory, (Listed("a", "4", (Take("g", 110, 1),)),)))
    books.pod_gone("1")
    assert said() == ["node n: pods that are gone hold more of GPU g than there is of it"]


def test_of_many_faults_at_once_some_are_said_and_the_others_counted(books: Books, said: Saying) -> None:
    for number in range(FAULTS_BURST + 10):
        books.pod_seen(pod(f"stray-{number}", str(number), 1))
    assert len(said()) == FAULTS_BURST
    assert said() == []
