"""What the assigner makes of a pod's JSON: what it asks for, and what can never be had."""

import json
from typing import Any

import pytest

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Ask, Program
from tests.kit.assigner.pod_json import MEMORY, PERCENT, container, pod, pod_json, sidecar


@pytest.mark.parametrize(
    ("quantity", "ask"),
    [
        ("1", Ask(1, 1)),
        ("99", Ask(1, 99)),
        ("5e1", Ask(1, 50)),
        ("+50", Ask(1, 50)),
        (50, Ask(1, 50)),
        ("100", Ask(1, 100)),
        ("1k", Ask(10, 100)),
        ("16e2", Ask(16, 100)),
        ("1600", Ask(16, 100)),
    ],
)
def test_a_part_of_a_gpu_or_1_to_16_whole_ones_can_be_asked_for(quantity: object, ask: Ask) -> None:
    asking = pod(container("main", quantity))
    assert asking.fault == ""
    assert asking.request.asks == (ask,)
    assert asking.asks


@pytest.mark.parametrize(
    "quantity",
    [
        "101",
        "150",
        "1601",
        "1700",
        "2k",
        "9E",
        "1Ki",
        "99999999999999999999e99",
        "0.5",
        "500m",
        "-1",
        "",
        " 50",
        "٥٠",
        "fifty",
        "50%",
        "1e-1",
        "50\n",
        True,
        None,
        0.5,
        -5,
        10**30,
        ["50"],
        {"a": 1},
    ],
)
def test_any_other_percent_is_a_fault_that_names_container_resource_and_value(quantity: object) -> None:
    asking = pod(container("main", quantity))
    assert asking.fault.startswith(f"container main: {PERCENT}")
    assert asking.fault.isprintable()
    assert len(asking.fault) < 400
    assert asking.request.asks == () == asking.containers
    assert asking.asks


def test_what_is_wrong_is_told_with_its_value() -> None:
    assert "150 percent cannot be granted: ask for 1 to 99" in pod(container("main", "150")).fault
    assert "is '0.5': expected a whole number" in pod(container("main", "0.5")).fault


@pytest.mark.parametrize("memory", ["0", "-1", "0.5", "16777217", "1Ti", "", None, "8,192", True, [], 10**40])
def test_memory_that_no_gpu_has_is_a_fault_that_names_it(memory: object) -> None:
    asked = container("main", "50", "1")
    asked["resources"]["limits"][MEMORY] = memory
    fault = pod(asked).fault
    assert fault.startswith(f"container main: {MEMORY} is ")
    assert fault.isprintable()


def test_memory_is_counted_in_mib_up_to_what_no_gpu_has() -> None:
    assert pod(container("main", "50", "8Ki")).request.asks == (Ask(1, 50, 8192),)
    assert pod(container("main", "200", "16777216")).request.asks == (Ask(2, 100, 1 << 24),)


def test_who_asks_for_no_gpu_asks_for_nothing() -> None:
    for asking in (
        pod(),
        pod(container("main", "0")),
        pod({"name": "main"}),
        pod({"name": "main", "resources": {"limits": {"cpu": "1"}}}),
    ):
        assert not asking.asks
        assert asking.request.asks == ()


def test_each_container_that_stays_has_an_ask_of_its_own_in_the_kubelets_order() -> None:
    asking = pod(container("a", "30"), {"name": "b"}, container("c", "200"), init=(sidecar("s", "10"),))
    assert asking.request.asks == (Ask(1, 10), Ask(1, 30), Ask(2, 100))
    assert [[each.name for each in group] for group in asking.containers] == [["s"], ["a"], ["c"]]


def test_a_pod_that_needs_over_16_gpus_is_a_fault() -> None:
    assert pod(container("a", "1000"), container("b", "600")).fault == ""
    for others in ("601", "700", "600"):
        fault = pod(container("a", "1000"), container("b", others), container("c", "50")).fault
        assert fault
    assert "1650 units in sum: no node has over 16 GPUs" in fault


def test_a_pod_whose_parts_fit_on_16_gpus_only_in_sum_is_a_fault() -> None:
    assert pod(container("a", "1400"), container("b", "60"), container("c", "50"), container("d", "50")).fault == ""
    fault = pod(container("a", "1400"), *(container(name, "51") for name in "bcd")).fault
    assert "need 17 GPUs, because no two that ask for over 50 units fit on one: no node has over 16" in fault


def test_an_init_containers_units_go_to_the_next_that_stays() -> None:
    asking = pod(container("a", "40"), container("b", "30"), init=(container("i", "40"), container("j", "10")))
    assert asking.request.asks == (Ask(1, 40), Ask(1, 30))
    assert [[each.name for each in group] for group in asking.containers] == [["i", "j", "a"], ["b"]]
    alone = pod({"name": "main"}, init=(container("i", "40"), container("j", "70")))
    assert alone.request.asks == (Ask(1, 70),)
    larger = pod(container("a", "40"), init=(container("i", "70"),))
    assert larger.request.asks == (Ask(1, 70),)
    smaller = pod(container("a", "200"), init=(container("i", "70"),))
    assert smaller.request.asks == (Ask(2, 100),)
    assert json.loads(smaller.assign([["g", "h"]])) == {"i": ["g"], "a": ["g", "h"]}


def test_an_init_container_after_one_that_stays_has_units_beside_it() -> None:
    before = pod(container("a", "50"), init=(sidecar("s", "50"), container("i", "50")))
    assert before.request.asks == (Ask(1, 50), Ask(1, 50))
    assert [[each.name for each in group] for group in before.containers] == [["s"], ["i", "a"]]
    last = pod(init=(sidecar("s", "50"), container("i", "60")))
    assert last.request.asks == (Ask(1, 50), Ask(1, 60))


@pytest.mark.parametrize(
    ("init", "main"),
    [
        ([container("i", "70")], [container("a", "40"), container("b", "30")]),
        ([container("i", "100"), sidecar("s", "50")], [container("a", "40")]),
        ([container("i", "200")], [container("a", "100")]),
        ([container("i", "200")], [container("a", "40")]),
        ([container("i", "200"), container("j", "100")], [container("a", "200")]),
    ],
)
def test_an_init_container_that_would_leave_units_to_who_knows_whom_is_a_fault(
    init: list[Any], main: list[Any]
) -> None:
    fault = pod(*main, init=tuple(init)).fault
    assert fault.startswith("init container i asks for ")
    assert "ask for as many" in fault


def test_those_with_a_gpu_in_common_name_their_memory_all_or_none() -> None:
    fault = pod(container("a", "40"), init=(container("i", "40", "100"),)).fault
    assert f"containers i and a have a GPU in common: name {MEMORY} for all of them or for none" == fault
    labels = {"edge/gpu-affinity": "team"}
    assert "a and b" in pod(container("a", "40", "7"), container("b", "40"), labels=labels).fault
    apart = pod(container("a", "40", "100"), container("b", "40"), init=(container("i", "40", "300"),))
    assert apart.request.asks == (Ask(1, 40, 300), Ask(1, 40))


def test_containers_of_an_affinity_have_one_ask_with_what_they_have_at_a_time() -> None:
    labels = {"edge/gpu-affinity": "team"}
    asking = pod(
        container("a", "40", "500"), container("b", "30", "500"), labels=labels, init=(container("i", "20", "9"),)
    )
    assert asking.request.asks == (Ask(1, 70, 1000),)
    assert asking.request.affinity == "d/team"
    beside = pod(container("a", "40"), labels=labels, init=(sidecar("s", "50"), container("i", "50")))
    assert beside.request.asks == (Ask(1, 100),)
    assert json.loads(beside.assign([["g"]])) == {"s": ["g"], "i": ["g"], "a": ["g"]}


def test_an_affinity_is_of_its_namespace_and_an_exclusion_is_of_the_cluster() -> None:
    labels = {"edge/gpu-affinity": "x", "edge/gpu-exclusion": "y"}
    one, other = (pod(container("a", "1"), labels=labels, namespace=each).request for each in ("one", "other"))
    assert (one.affinity, other.affinity) == ("one/x", "other/x")
    assert one.exclusion == other.exclusion == "y"
    none = pod(container("a", "1"), labels={"edge/gpu-affinity": "", "edge/gpu-exclusion": ""}).request
    assert (none.affinity, none.exclusion) == ("", "")


@pytest.mark.parametrize(("said", "latency"), [("latency", True), ("batch", False), ("fast", False), (["x"], False)])
def test_what_is_known_of_a_pods_program_is_its_class(said: object, latency: bool) -> None:
    asking = pod(container("a", "1"), annotations={"edge/share-class": said})
    assert not asking.fault
    assert asking.request.program == Program(latency=latency)
    assert pod(container("a", "1")).request.program == Program()


@pytest.mark.parametrize("percents", [("100",), ("300",), ("50", "200"), ("50", "51"), ("99", "1", "1")])
def test_an_affinity_with_more_than_a_part_of_a_gpu_is_a_fault(percents: tuple[str, ...]) -> None:
    containers = [container(f"c{place}", percent) for place, percent in enumerate(percents)]
    assert pod(*containers).fault == ""
    fault = pod(*containers, labels={"edge/gpu-affinity": "team"}).fault
    assert "edge/gpu-affinity" in fault
    assert "c0" in fault or "c1" in fault


def test_models_are_those_named_as_the_node_label_spells_them() -> None:
    asking = pod(container("a", "1"), annotations={"edge/gpu-model": "Tesla-T4, NVIDIA-A10,Tesla-T4"})
    assert asking.request.models == {"Tesla-T4", "NVIDIA-A10"}
    assert pod(container("a", "1")).request.models == frozenset()


@pytest.mark.parametrize(
    "models", ["", ",", "T4,", "Tesla T4", "-T4", "T4%", "a\nb", "x" * 64, "١", "\ud800", 5, [], {}, "T4," * 10_000]
)
def test_a_model_that_no_node_can_have_is_a_fault_that_names_the_annotation(models: object) -> None:
    fault = pod(container("a", "1"), annotations={"edge/gpu-model": models}).fault
    if models == 5:
        assert fault == ""
    else:
        assert fault.startswith("annotation edge/gpu-model is ")
        assert fault.isprintable()
        assert len(fault) < 300


def test_up_to_16_models_can_be_named() -> None:
    named = [f"m{number}" for number in range(17)]
    assert pod(container("a", "1"), annotations={"edge/gpu-model": ",".join(named[:16])}).fault == ""
    assert "names 17 models" in pod(container("a", "1"), annotations={"edge/gpu-model": ",".join(named)}).fault


def test_what_is_known_of_a_pod_is_kept_whatever_it_asks_for() -> None:
    told = pod_json(container("a", "150"), resourceVersion="7", annotations={"edge/gpu-assignment": "lies"})
    told["spec"] |= {"nodeName": "n", "priority": -5}
    told["status"] = {"phase": "Failed"}
    parsed = parse_pod(told)
    assert (parsed.uid, str(parsed), parsed.version, parsed.node) == ("u", "d/p", "7", "n")
    assert (parsed.priority, parsed.is_over, parsed.assignment) == (-5, True, "lies")
    assert parsed.fault


def test_of_a_pod_that_is_bound_with_an_assignment_only_its_end_is_news() -> None:
    bound = pod(container("a", "40"), annotations={"edge/gpu-assignment": "this"})
    later = pod_json(container("a", "60"), annotations={"edge/gpu-assignment": "that"})
    assert parse_pod(later, {"u": bound}.get) is bound
    assert parse_pod({**later, "status": {"phase": "Running"}}, {"u": bound}.get) is bound
    assert parse_pod({**later, "status": {"phase": "Succeeded"}}, {"u": bound}.get) == bound._replace(is_over=True)
    assert parse_pod(later, {"v": bound}.get).assignment == "that"


def test_of_a_pod_that_is_bound_without_an_assignment_this_may_come_later() -> None:
    later = pod_json(container("a", "40"), annotations={"edge/gpu-assignment": "that"})
    assert parse_pod(later, {"u": pod(container("a", "40"))}.get).assignment == "that"


def test_a_pod_that_is_told_as_it_was_reserved_is_that_and_no_other_is() -> None:
    asking = pod_json(container("a", "40"), resourceVersion="1")
    reserved = parse_pod(asking)._replace(node="n", assignment="this")

    def told(node: str, assignment: str, phase: str = "Pending") -> SharePod:
        later = pod_json(container("a", "40"), resourceVersion="2", annotations={"edge/gpu-assignment": assignment})
        later["spec"]["nodeName"] = node
        return parse_pod({**later, "status": {"phase": phase}}, reserved={"u": reserved}.get)

    assert told("n", "this") is reserved
    assert (told("m", "this").node, told("n", "that").assignment) == ("m", "that")
    assert told("n", "this", "Failed") == reserved._replace(version="2", is_over=True)
    # What is written without an assignment is no pod's with devices.
    bare = reserved._replace(assignment=None)
    assert parse_pod({**asking, "spec": {"nodeName": "n"}}, reserved={"u": bare}.get) is not bare


def test_what_is_assigned_is_read_by_ask_and_nonsense_is_told() -> None:
    asking = pod(
        container("a", "200"), container("b", "5"), annotations={"edge/gpu-assignment": '{"a":["g","h"],"b":["g"]}'}
    )
    assert [[(each.name, gpus) for each, gpus in group] for group in asking.assigned()] == [
        [("a", ("g", "h"))],
        [("b", ("g",))],
    ]
    for wrong in ("", "{}", "[]", '{"a":["g"],"b":["g"]}', '{"a":["g","h"]}', '{"a":["g","g"],"b":["g"]}', "[" * 9999):
        with pytest.raises(InvalidRequest, match="edge/gpu-assignment") as caught:
            pod(container("a", "200"), container("b", "5"), annotations={"edge/gpu-assignment": wrong}).assigned()
        assert str(caught.value).isprintable()
    with pytest.raises(InvalidRequest, match="without annotation"):
        pod(container("a", "1")).assigned()
