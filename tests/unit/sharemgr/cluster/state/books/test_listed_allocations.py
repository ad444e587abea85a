"""What nodes list, taken into the ledger: nothing is believed further than it reaches."""

from sharemgr.cluster.state.books import AcceleratorNode
from sharemgr.cluster.state.nodes import Device, Inventory
from tests.kit.assigner.books import G, H, books_of, held, listed, node, pod


def test_what_is_listed_for_a_pod_is_not_counted_beside_what_it_was_assigned() -> None:
    in_either_order = books_of(node(listed("u", "g", 40, 400))), books_of()
    for books in in_either_order:
        books.pod_seen(pod("u", {"main": ["g"]}))
        books.node_told(node(listed("u", "g", 40, 400)))
        assert held(books) == {"g": (40, 400)}
        assert books.flagged == {}


def test_a_pod_without_an_assignment_has_what_its_node_lists_and_is_flagged() -> None:
    books = books_of(node())
    books.pod_seen(pod("u", None))
    assert "without annotation edge/gpu-assignment" in books.flagged["u"]
    assert held(books) == {}
    books.node_told(node(listed("u", "g", 40, 300), listed("v", "h", 10, 1)))
    assert held(books) == {"g": (40, 300), "h": (10, 1)}
    books.node_told(node(listed("u", "h", 50, 1)))
    assert held(books) == {"h": (50, 1)}
    assert set(books.flagged) == {"u"}
    books.pod_gone("u")
    assert books.flagged == {}
    assert held(books) == {"h": (50, 1)}
    books.node_told(node())
    assert held(books) == {}


def test_labels_count_also_of_a_pod_that_did_not_come_through_the_assigner() -> None:
    for told_first in (True, False):
        books = books_of(node(listed("u", "h", 40, 400)) if told_first else node())
        books.pod_seen(pod("u", None, exclusion="x", affinity="y"))
        books.node_told(node(listed("u", "h", 40, 400)))
        there = books.ledger.node("n")
        assert there is not None
        assert there.use["h"].exclusions == {"x": 1}
        assert books.ledger.together("d/y") == {("n", "h"): 1}
        books.pod_gone("u")
        assert there.use["h"].exclusions == {"x": 1}
        books.node_told(node())
        assert books.ledger.together("d/y") == {}


def test_an_allocation_of_nobody_knows_whom_is_held_until_its_node_says_whose_it_is() -> None:
    books = books_of(node(listed("", "g", 40, 400, "a"), listed("", "g", 10, 1, "b")))
    assert held(books) == {"g": (50, 401)}
    books.pod_seen(pod("u", {"main": ["g"]}))
    # For a moment it is counted twice: less is free than could be.
    assert held(books) == {"g": (90, 801)}
    books.node_told(node(listed("u", "g", 40, 400, "a")))
    assert held(books) == {"g": (40, 400)}


def test_a_pod_with_several_allocations_has_them_all() -> None:
    books = books_of(node(listed("u", "g", 40, 1, "a"), listed("u", "g", 5, 2, "b"), listed("u", "h", 1, 3, "c")))
    assert held(books) == {"g": (45, 3), "h": (1, 3)}


def test_a_nodes_lies_reach_no_further_than_that_node() -> None:
    books = books_of(node(), node(name="liar", gpus=[Device("mine", "T4", 9)]))
    books.pod_seen(pod("u", {"main": ["g"]}, affinity="y", exclusion="x"))
    books.node_told(node(listed("u", "g", 100, 1000), name="liar", gpus=[Device("mine", "T4", 9)]))
    books.node_told(node(listed("u", "mine", 100, 9), name="liar", gpus=[G, Device("mine", "T4", 9)]))
    assert held(books) == {"g": (40, 400)}
    assert books.flagged == {}
    assert books.ledger.together("d/y") == {("n", "g"): 1}
    books.pod_gone("u")
    assert held(books) == {}
    assert held(books, "liar") == {"mine": (100, 9)}


def test_a_node_that_vanishes_takes_no_pods_with_it() -> None:
    books = books_of(node())
    books.pod_seen(pod("u", {"main": ["g"]}))
    books.node_told(node(listed("u", "g", 40, 400), listed("old", "h", 5, 5)))
    books.nodes_listed([])
    assert held(books) == {"g": (40, 400)}
    books.node_told(node(listed("u", "g", 40, 400)))
    assert held(books) == {"g": (40, 400)}
    assert books.flagged == {}
    books.node_told(node(gpus=[H]))
    assert held(books)["g"][0] == 40
    assert books.flagged == {"u": "d/u: its node n has no GPU g (any more)"}
    books.node_told(node())
    assert books.flagged == {}
    books.node_told(node(gpus=[H]))
    books.pod_gone("u")
    assert books.flagged == {}
    books.node_gone("n")
    assert books.ledger.node("n") is None


def test_a_node_that_tells_nonsense_has_a_fault_until_it_tells_sense_or_is_gone() -> None:
    nonsense = AcceleratorNode(Inventory("n", ()), fault="nonsense")
    books = books_of(nonsense)
    assert books.faults == {"n": "nonsense"}
    books.node_told(node())
    assert books.faults == {}
    books.node_told(nonsense)
    books.node_gone("n")
    assert books.faults == {}
    books.node_told(nonsense)
    books.nodes_listed([])
    assert books.faults == {}
