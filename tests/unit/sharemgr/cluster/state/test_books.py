"""What the API server tells, taken into the ledger: nothing is believed further than it reaches."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from sharemgr.cluster.state.books import AcceleratorNode, Books, Listed
from sharemgr.cluster.state.cores import Cores, Offer
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Holding, Program, Take

G, H = Device("g", "T4", 1000), Device("h", "T4", 1000)


def node(*allocations: Listed, name: str = "n", gpus: Sequence[Device] = (G, H)) -> AcceleratorNode:
    return AcceleratorNode(Inventory(name, tuple(gpus)), allocations)


def listed(uid: str, gpu: str, units: int, memory_mib: int, name: str = "") -> Listed:
    return Listed(name or f"of {uid}", uid, (Take(gpu, units, memory_mib),))


def pod(
    uid: str,
    gpus: Mapping[str, Sequence[str]] | str | None,
    percent: str = "40",
    on: str = "n",
    phase: str = "Running",
    memory_mib: str = "",
    init: Sequence[tuple[str, str, bool]] = (),
    cpu: str = "0",
    memory: str = "0",
    **labels: str,
) -> SharePod:
    """One of container main; ``init`` are names, percents, and whether they stay."""
    limits = {"edge/gpu-percent": percent} | ({"edge/gpu-memory-mib": memory_mib} if memory_mib else {})
    before = [
        {"name": name, "resources": {"limits": {"edge/gpu-percent": of}}}
        | ({"restartPolicy": "Always"} if stays else {})
        for name, of, stays in init
    ]
    metadata: dict[str, object] = {"uid": uid, "namespace": "d", "name": uid}
    metadata["labels"] = {f"edge/gpu-{key}": value for key, value in labels.items()}
    if gpus is not None:
        metadata["annotations"] = {"edge/gpu-assignment": gpus if isinstance(gpus, str) else json.dumps(gpus)}
    resources = {"limits": limits, "requests": {"cpu": cpu, "memory": memory}}
    spec = {"nodeName": on, "initContainers": before, "containers": [{"name": "main", "resources": resources}]}
    return parse_pod({"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def held(books: Books, name: str = "n") -> dict[str, tuple[int, int]]:
    """Units and MiB that are held of each GPU of which any are."""
    there = books.ledger.node(name)
    return {} if there is None else {gpu: (use.units, use.memory_mib) for gpu, use in there.use.items()}


def books_of(*nodes: AcceleratorNode) -> Books:
    books = Books()
    books.nodes_listed(nodes)
    return books


def test_a_pod_has_what_its_assignment_says_and_memory_in_proportion() -> None:
    books = books_of(node())
    books.pods_listed([pod("u", {"main": ["g"]}), pod("v", {"main": ["g"]}, "5", memory_mib="70")])
    assert held(books) == {"g": (45, 470)}
    assert books.flagged == {}
    assert books.pods == 2


def test_what_a_pod_holds_is_of_its_program() -> None:
    serves = pod("u", {"main": ["g"]})
    serves = replace(serves, request=replace(serves.request, program=Program("serves", latency=True)))
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


def test_a_list_ends_what_is_not_in_it_but_what_is_only_assumed() -> None:
    books = books_of(node())
    books.pods_listed([pod("u", {"main": ["g"]}), pod("v", {"main": ["h"]})])
    books.ledger.assume(books.holding(pod("w", {"main": ["h"]}, "10")))
    books.pods_listed([pod("v", {"main": ["h"]})])
    assert held(books) == {"h": (50, 500)}
    books.pods_listed([])
    assert held(books) == {"h": (10, 100)}


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


def without_gpus(uid: str, cpu: str, memory: str, on: str = "n", phase: str = "Running") -> SharePod:
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    spec = {"nodeName": on, "containers": [{"name": "main", "resources": requests}]}
    metadata = {"uid": uid, "namespace": "d", "name": uid}
    return parse_pod({"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def left(books: Books, name: str = "n") -> tuple[int | None, int | None]:
    """Millicores and MiB of RAM that nobody asks for."""
    there = books.ledger.node(name)
    assert there is not None
    return there.cpu_free_milli, there.ram_free_mib


def offer(cpu_milli: int, ram_mib: int, name: str = "n") -> Offer:
    return Offer(name, Cores(cpu_milli, ram_mib))


def test_cores_and_ram_are_what_the_node_offers_less_what_all_its_pods_ask_for() -> None:
    books = books_of(node())
    assert left(books) == (None, None)
    books.offers_listed([offer(8000, 4096), offer(1, 1, "without")])
    assert left(books) == (8000, 4096)
    books.pods_listed([without_gpus("daemon", "500m", "96Mi"), pod("u", {"main": ["g"]}, cpu="2", memory="1Gi")])
    assert left(books) == (5500, 2976)
    assert books.pods == 1
    assert books.ledger.node("without") is None
    books.pod_seen(without_gpus("batch", "1", "1Gi"))
    assert left(books) == (4500, 1952)
    books.pod_seen(without_gpus("batch", "1", "1Gi", phase="Succeeded"))
    assert left(books) == (5500, 2976)
    books.pod_gone("daemon")
    books.pod_gone("u")
    assert left(books) == (8000, 4096)


def test_what_is_told_of_cores_stands_whatever_comes_first_and_goes_with_the_node() -> None:
    books = Books()
    books.pods_listed([without_gpus("daemon", "500m", "96Mi")])
    books.offered(offer(8000, 4096))
    assert list(books.ledger) == []
    books.nodes_listed([node()])
    assert left(books) == (7500, 4000)
    books.node_told(node(gpus=[G]))
    assert left(books) == (7500, 4000)
    books.pods_listed([])
    assert left(books) == (8000, 4096)
    books.offered(offer(9000, 4096))
    assert left(books) == (9000, 4096)
    books.offers_listed([])
    assert left(books) == (None, None)
    books.offered(offer(8000, 4096))
    books.offered(Offer("n", None))
    assert left(books) == (None, None)
    books.node_gone("n")
    assert list(books.ledger) == []


def test_a_pod_without_gpus_that_changes_nothing_leaves_its_node_as_it_was() -> None:
    books = books_of(node())
    books.offered(offer(8000, 4096))
    books.pod_seen(without_gpus("daemon", "500m", "96Mi", phase="Pending"))
    books.ledger.take_changed()
    books.pod_seen(without_gpus("daemon", "500m", "96Mi"))
    books.offered(offer(8000, 4096))
    assert books.ledger.take_changed() == []
