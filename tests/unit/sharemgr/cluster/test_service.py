"""What the service says of what it is told."""

import logging

import pytest

from sharemgr.cluster.books import AcceleratorNode, Books
from sharemgr.cluster.ledger import Inventory
from sharemgr.cluster.pods import parse_pod
from sharemgr.cluster.service import Faults


def test_a_fault_is_said_once_and_again_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    books = Books()
    faults = Faults(books)
    limits = {"resources": {"limits": {"edge/gpu-percent": "40"}}, "name": "main"}
    metadata = {"uid": "u", "namespace": "team", "name": "stray"}
    stray = parse_pod({"metadata": metadata, "spec": {"nodeName": "n", "containers": [limits]}})

    def said() -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            faults.say()
        return caplog.messages

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
