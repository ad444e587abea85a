"""What pods are assigned, taken into the ledger: nothing is believed further than it reaches."""

import pytest

from sharemgr.cluster.state.books import Books
from sharemgr.cluster.state.nodes import Device
from sharemgr.cluster.state.request import Holding, Program, Take
from tests.kit.assigner.books import books_of, held, listed, node, pod


def test_a_pod_has_what_its_assignment_says_and_memory_in_proportion() -> None:
    books = books_of(node())
    books.pods_listed([pod("u", {"main": ["g"]}), pod("v", {"main": ["g"]}, "5", memory_mib="70")])
    assert held(books) == {"g": (45, 470)}
    assert books.flagged == {}
    assert books.pods == 2


def test_what_a_pod_holds_is_of_its_program() -> None:
    serves = pod("u", {"main": ["g"]})
    serves = serves._replace(request=serves.request._replace(program=Program("serves", latency=True)))
    books = books_of(node())
    books.pods_listed([serves, pod("v", {"main": ["g"]})])
    there = books.ledger.node("n")
    assert there is not None
    assert dict(there.use["g"].programs) == {(Program("serves", latency=True), 40): 1}


def test_memory_in_proportion_is_known_once_its_node_tells_of_its_gpus() -> None:
    books = Books()
    books.pods_listed([pod("u", {"main": ["g"]})])
    assert held(books) == {"g": (40, 0)}
    books.nodes_listed([node()])
    assert held(books) == {"g": (40, 400)}
    books.node_told(node(gpus=[Device("g", "T4", 2000)]))
    assert held(books) == {"g": (40, 800)}
    books.node_gone("n")
    books.node_told(node())
    assert held(books) == {"g": (40, 400)}


def test_a_pod_that_its_plugin_assigned_is_flagged_no_longer() -> None:
    books = books_of(node())
    books.pod_seen(pod("u", None))
    books.pod_seen(pod("u", {"main": ["g"]}))
    assert books.flagged == {}
    assert held(books) == {"g": (40, 400)}


def test_a_binding_that_was_assumed_for_one_that_is_bound_elsewhere_is_given_up_when_it_is_told_of() -> None:
    books = books_of(node())
    books.pod_seen(pod("u", None))
    books.ledger.assume(Holding("u", "n", (Take("g", 40, 400),)))
    assert held(books) == {"g": (40, 400)}
    books.pod_seen(pod("u", None))
    assert held(books) == {}


@pytest.mark.parametrize(
    "lie",
    ["", "{", "[]", "{}", '{"main":[]}', '{"main":["g","h"]}', '{"other":["g"]}', '{"main":["a::b"]}', '{"main":"g"}'],
)
def test_an_assignment_that_is_nonsense_is_flagged_and_what_is_listed_counts(lie: str) -> None:
    books = books_of(node(listed("u", "h", 40, 400)))
    books.pod_seen(pod("u", lie))
    assert books.flagged["u"].startswith("d/u: annotation edge/gpu-assignment")
    assert books.flagged["u"].isprintable()
    assert held(books) == {"h": (40, 400)}


@pytest.mark.parametrize("lie", ["g", "of-another-node", "of-nobody"])
def test_an_assignment_to_another_gpu_than_is_listed_is_flagged_and_what_is_listed_counts(lie: str) -> None:
    books = books_of(node(), node(name="m", gpus=[Device("of-another-node", "T4", 1000)]))
    books.pod_seen(pod("u", {"main": [lie]}))
    missing = {} if lie == "g" else {"u": f"d/u: its node n has no GPU {lie} (any more)"}
    assert books.flagged == missing
    assert held(books)[lie][0] == 40
    books.node_told(node(listed("u", "h", 40, 400)))
    assert books.flagged["u"] == f"d/u: its assignment is of {lie}, but it has a part of h"
    assert held(books) == {"h": (40, 400)}
    assert held(books, "m") == {}
    books.node_told(node(listed("u", lie, 40, 400)))
    assert books.flagged == missing


def test_a_lie_written_over_many_lines_is_flagged_in_one() -> None:
    books = books_of(node(listed("u", "h", 40, 400)))
    books.pod_seen(pod("u", '{"main":\n["g"]}'))
    assert books.flagged["u"].isprintable()


def test_later_edits_change_nothing() -> None:
    books = books_of(node())
    books.pod_seen(pod("u", {"main": ["g"]}, exclusion="x", affinity="y"))
    for edited in (pod("u", {"main": ["h"]}), pod("u", None), pod("u", "{"), pod("u", {"main": ["h"]}, "7", on="m")):
        books.pod_seen(edited)
        assert held(books) == {"g": (40, 400)}
        assert held(books, "m") == {}
        assert [each.uid for each in books.pods_on("n")] == ["u"]
        assert books.pods_on("m") == []
        assert books.ledger.together("d/y") == {("n", "g"): 1}
    lies = books_of(node(listed("v", "h", 40, 400)))
    lies.pod_seen(pod("v", "nonsense"))
    lies.pod_seen(pod("v", {"main": ["h"]}))
    assert set(lies.flagged) == {"v"}


def test_what_a_pod_asks_for_in_vain_is_flagged_where_it_was_bound_nonetheless() -> None:
    books = books_of(node(listed("u", "h", 50, 4)))
    books.pod_seen(pod("u", {"main": ["g"]}, "150"))
    assert "150 percent cannot be granted" in books.flagged["u"]
    assert held(books) == {"h": (50, 4)}


def test_pods_that_have_nothing_to_do_with_gpus_are_not_kept() -> None:
    books = books_of(node())
    for other in (pod("u", None, "0"), pod("v", {"main": ["g"]}, on=""), pod("w", {"main": ["g"]}, phase="Failed")):
        books.pod_seen(other)
    assert (books.pods, books.flagged, held(books)) == (0, {}, {})


def test_an_init_container_hands_its_units_on_and_has_its_own_beside_one_that_stays() -> None:
    books = books_of(node())
    books.pod_seen(pod("u", {"i": ["g"], "main": ["g"]}, init=[("i", "30", False)]))
    assert held(books) == {"g": (40, 400)}
    books.pod_gone("u")
    books.pod_seen(pod("v", {"i": ["g"], "main": ["g"]}, "20", init=[("i", "30", False)]))
    assert held(books) == {"g": (30, 300)}
    books.pod_gone("v")
    last = pod("w", {"i": ["g"], "s": ["g"], "main": ["h"]}, init=[("s", "50", True), ("i", "40", False)])
    books.pod_seen(last)
    assert held(books) == {"g": (90, 900), "h": (40, 400)}
    books.pod_gone("w")
    assert held(books) == {}
