"""A cluster's devices from its API server's objects, whatever these say, and how they are shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from edgeshare.cli.status.cluster import Cluster, Node, parse_node
from edgeshare.cli.status.cluster_view import lines, tables
from edgeshare.contract.errors import InvalidRequest
from edgeshare.shown.waiting_pods import parse_waiting


def node(name: str = "n1", devices: object = (), allocations: object = ()) -> dict[str, Any]:
    told = [list(each) if isinstance(each, tuple) else each for each in (devices, allocations)]
    return {"metadata": {"name": name}, "status": {"devices": told[0], "allocations": told[1]}}


def device(name: str, **others: object) -> dict[str, Any]:
    return {"id": name, "kind": "gpu", "model": "Tesla T4", "memoryMiB": 16_000, "healthy": True, **others}


def allocation(*devices: str, **others: object) -> dict[str, Any]:
    whose = {"pod": {"namespace": "team", "name": "web-0", "uid": "u"}, "container": "main"}
    return {"id": "a", "devices": list(devices), "unitsEach": 30, "memoryMiB": 4_000, **whose, **others}


def pod(limits: object = (), **others: object) -> dict[str, Any]:
    asked = {"resources": {"limits": dict(limits) if isinstance(limits, tuple) else limits}}
    spec = {"containers": [{"name": "main", **asked}], "schedulerName": "edgeshare", **others}
    return {"metadata": {"namespace": "team", "name": "web-1"}, "spec": spec}


def shown(*nodes: dict[str, Any], waiting: tuple[dict[str, Any], ...] = ()) -> list[str]:
    """The lines of the tables, with single spaces."""
    pods = [each for each in map(parse_waiting, waiting) if each is not None]
    console = Console(width=300, markup=False)
    with console.capture() as captured:
        for each in tables(Cluster(nodes=[parse_node(each) for each in nodes], waiting=pods)):
            console.print(each)
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_each_device_is_told_with_who_has_it_and_why_it_is_not_well() -> None:
    told = node(
        devices=(device("g"), device("h", healthy=False, cause="XID 62")),
        allocations=(allocation("g"), allocation("g", "h", unitsEach=20, pod={}, container="")),
    )
    assert shown(told)[1:3] == [
        "n1 gpu Tesla T4 50 % 8000 of 16000 MiB healthy team/web-0/main 30 %, nobody is known yet 20 % g",
        "n1 gpu Tesla T4 20 % 4000 of 16000 MiB XID 62 nobody is known yet 20 % h",
    ]


def test_a_pod_that_waits_is_told_with_what_it_asks_for_and_why() -> None:
    why = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes: 60 units of one GPU"}]}
    first = pod((("edge/gpu-percent", "60"), ("edge/gpu-memory-mib", "4k"), ("cpu", "100m"))) | {"status": why}
    second = pod((("edge/tpu-percent", 30),))
    assert shown(node(), waiting=(first, second))[-2:] == [
        "team/web-1 60 edge/gpu-percent, 4000 edge/gpu-memory-mib edgeshare 0/1 nodes: 60 units of one GPU",
        "team/web-1 30 edge/tpu-percent edgeshare its scheduler did not say yet",
    ]


def test_a_pod_asks_for_what_it_has_at_a_time() -> None:
    def asks(percent: int, **others: str) -> dict[str, Any]:
        return {"resources": {"limits": {"edge/gpu-percent": str(percent)}}, **others}

    begin = [asks(10, restartPolicy="Always"), asks(50)]
    waiting = parse_waiting(pod(containers=[asks(20), asks(25)], initContainers=begin))
    assert waiting is not None
    assert waiting.asks == {"edge/gpu-percent": 60}


def test_who_asks_for_no_share_does_not_wait_for_one() -> None:
    assert parse_waiting(pod((("cpu", "2"),))) is None
    assert parse_waiting(pod()) is None


def test_nothing_to_show_says_so() -> None:
    told = shown()
    assert "no node tells of devices: is the device plugin installed, with the API server's address?" in told
    assert told[-1] == "no pod with a share waits for a node"


def test_a_node_that_tells_nonsense_is_shown_with_its_fault_and_hides_no_other() -> None:
    told = shown(node("bad", devices="none"), node("good", devices=(device("g"),)))
    assert told[1].startswith("bad cannot be read: status.devices: Input should be a valid list")
    assert told[2].startswith("good gpu")


def test_nothing_that_somebody_wrote_moves_the_terminal_or_is_taken_for_markup() -> None:
    told = shown(
        node(devices=(device("g", model="\x1b[2J[red]T4[/red]\n"),), allocations=(allocation("g", container="\x07"),))
    )
    assert "n1 gpu [2J[red]T4[/red] 30 % 4000 of 16000 MiB healthy team/web-0/ 30 % g" in told


def test_lines_say_the_same_as_the_tables() -> None:
    cluster = Cluster(nodes=[parse_node(node(devices=(device("g"),))), Node(name="bad", fault="x")], waiting=[])
    assert list(lines(cluster)) == [
        "node: n1  kind: gpu  model: Tesla T4  allocated: 0 %  memory allocated: 0 of 16000 MiB  health: healthy  "
        "pods: none  id: g",
        "node: bad  cannot be read: x",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "name", "status", "devices", "allocations", "spec", "containers", "resources"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_an_object_says_it_is_read_or_refused_in_one_line(told: Any) -> None:
    for parse in (parse_node, parse_waiting):
        said = ""
        try:
            parse(told)
        except InvalidRequest as error:
            said = str(error)
        assert "\n" not in said


@pytest.mark.parametrize("limit", ["1.5", "-3", "a"])
def test_a_limit_that_is_no_whole_number_is_refused_by_its_name(limit: str) -> None:
    with pytest.raises(InvalidRequest, match="edge/gpu-percent is '"):
        parse_waiting(pod((("edge/gpu-percent", limit),)))
