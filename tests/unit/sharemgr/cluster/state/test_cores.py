"""What nodes offer of cores and RAM, and what pods without GPUs leave of it."""

import pytest

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.state.cores import Cores, Left, Offer, parse_offer


def test_a_node_offers_what_it_calls_allocatable() -> None:
    allocatable = {"cpu": "63800m", "memory": "65819604Ki", "pods": "110", "edge/gpu-percent": "400"}
    status = {"capacity": {"cpu": "64", "memory": "64Gi"}, "allocatable": allocatable}
    assert parse_offer({"metadata": {"name": "n"}, "status": status}) == Offer("n", Cores(63_800, 64_276))


@pytest.mark.parametrize("status", [{}, {"status": {}}, {"status": {"allocatable": {"cpu": "1"}}}])
def test_a_node_that_nobody_runs_tells_of_nothing(status: dict[str, object]) -> None:
    assert parse_offer({"metadata": {"name": "n"}, **status}) == Offer("n", None)


@pytest.mark.parametrize(
    "thing",
    [
        None,
        {},
        {"metadata": {"name": ""}, "status": {"allocatable": {"cpu": "1", "memory": "1"}}},
        {"metadata": {"name": "n"}, "status": []},
        {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "memory": "much"}}},
        {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": ["1"], "memory": "1"}}},
    ],
)
def test_what_is_no_node_is_refused(thing: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^expected a Node: |^Node n: memory is 'much': expected a quantity"):
        parse_offer(thing)


def test_pods_without_gpus_leave_the_rest() -> None:
    left = Left()
    assert left.on("n") is None
    assert left.taken("u", "n", Cores(100, 10))
    assert left.on("n") is None
    assert left.offered(Offer("n", Cores(1000, 100)))
    assert left.taken("v", "n", Cores(200, 20))
    assert left.on("n") == Cores(700, 70)
    assert set(left.others) == {"u", "v"}
    assert left.given_back("u") == "n"
    assert left.on("n") == Cores(800, 80)
    assert left.offered(Offer("n", None))
    assert left.on("n") is None
    assert set(left.nodes) == set()


def test_what_was_told_before_is_no_news() -> None:
    left = Left()
    assert left.offered(Offer("n", Cores(1000, 100)))
    assert not left.offered(Offer("n", Cores(1000, 100)))
    assert left.offered(Offer("n", Cores(1000, 200)))
    assert left.taken("u", "n", Cores(100, 10))
    assert not left.taken("u", "n", Cores(100, 10))
    assert left.taken("u", "n", Cores(150, 10))
    assert left.on("n") == Cores(850, 190)
    assert left.given_back("u") == "n"
    assert left.given_back("u") is None
    assert left.on("n") == Cores(1000, 200)
