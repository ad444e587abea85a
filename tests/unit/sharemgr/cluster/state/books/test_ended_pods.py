"""Pods that end, or are listed no more: what they had is free when their node has let go, too."""

import pytest

from sharemgr.cluster.state.books import Books
from tests.kit.assigner.books import books_of, held, listed, node, pod


def test_units_are_free_when_the_pod_is_gone_and_its_node_has_let_go() -> None:
    gone_first, let_go_first = books_of(node()), books_of(node())
    for books in (gone_first, let_go_first):
        books.pod_seen(pod("u", {"main": ["g"]}))
        books.node_told(node(listed("u", "g", 40, 400)))
    gone_first.pod_seen(pod("u", {"main": ["g"]}, phase="Succeeded"))
    assert held(gone_first) == {"g": (40, 400)}
    gone_first.node_told(node())
    let_go_first.node_told(node())
    assert held(let_go_first) == {"g": (40, 400)}
    let_go_first.pod_seen(pod("u", {"main": ["g"]}, phase="Failed"))
    assert held(gone_first) == held(let_go_first) == {}
    assert gone_first.pods == let_go_first.pods == 0


def test_a_pod_that_is_being_deleted_keeps_what_it_has() -> None:
    books = books_of(node())
    told = pod("u", {"main": ["g"]})
    books.pod_seen(told)
    books.pod_seen(told)
    assert held(books) == {"g": (40, 400)}


@pytest.mark.parametrize("pods_first", [True, False])
def test_who_is_over_and_still_listed_keeps_its_labels_for_a_new_leader(pods_first: bool) -> None:
    over = pod("u", {"main": ["g"]}, phase="Succeeded", exclusion="x", affinity="y")
    there = node(listed("u", "g", 40, 400))
    books = Books()
    for tell in (lambda: books.pods_listed([over]), lambda: books.nodes_listed([there]))[:: 1 if pods_first else -1]:
        tell()

    def labels() -> tuple[dict[str, int], dict[tuple[str, str], int]]:
        known = books.ledger.node("n")
        assert known is not None
        return dict(known.use["g"].exclusions) if "g" in known.use else {}, dict(books.ledger.together("d/y"))

    assert held(books) == {"g": (40, 400)}
    assert labels() == ({"x": 1}, {("n", "g"): 1})
    books.pod_gone("u")
    books.node_told(there)
    assert labels() == ({"x": 1}, {("n", "g"): 1})
    books.node_told(node())
    assert labels() == ({}, {})
    assert held(books) == {}
    # Of one that was listed no more nothing is kept.
    books.pods_listed([over])
    books.pods_listed([])
    books.node_told(there)
    assert labels() == ({"": 1}, {})


def test_a_list_ends_what_is_not_in_it_but_what_is_only_assumed() -> None:
    books = books_of(node())
    books.pods_listed([pod("u", {"main": ["g"]}), pod("v", {"main": ["h"]})])
    books.ledger.assume(books.holding(pod("w", {"main": ["h"]}, "10")))
    books.pods_listed([pod("v", {"main": ["h"]})])
    assert held(books) == {"h": (50, 500)}
    books.pods_listed([])
    assert held(books) == {"h": (10, 100)}
