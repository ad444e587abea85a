"""Pods that were turned down: who waits, for how long, and how often that is looked at."""

from typing import Any

import pytest

from sharemgr.cluster.extender import assigner as module
from sharemgr.cluster.placement import placers
from sharemgr.cluster.placement.placing import rank
from tests.kit.assigner.deciding import assigner_of, gpu, node, pod


def test_a_pod_that_was_turned_down_waits_until_it_is_let_through() -> None:
    assigner = assigner_of(node("n", gpu("g")), node("m"))
    on_n = pod("a", "60", on="n", assignment='{"c0":["g"]}')
    assigner.pod_told("ADDED", on_n)
    assert assigner.filter(pod("p", "50"), ["n"]).nodes == []
    assert [str(each) for each in assigner.waits()] == ["d/p"]
    assigner.pod_told("DELETED", on_n)
    assert [str(each) for each in assigner.waits()] == ["d/p"]
    assert assigner.filter(pod("p", "50"), ["n"]).nodes == ["n"]
    assert assigner.waits() == []


def test_a_backlog_of_equal_pods_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assigner = assigner_of(node("n", gpu("g")), node("m"))
    on_n = pod("a", "60", on="n", assignment='{"c0":["g"]}')
    assigner.pod_told("ADDED", on_n)
    for number in range(20):
        assigner.filter(pod(f"p{number}", "200" if number % 2 else "300"), ["n"])
    assert assigner.fits_now() is None
    asked: list[object] = []

    def counting(*arguments: Any) -> Any:
        asked.append(arguments[2])
        return rank(*arguments)

    monkeypatch.setattr(placers, "rank", counting)
    assigner.pod_told("DELETED", on_n)
    assert assigner.fits_now() is None
    assert len(asked) == len(set(asked)) == 2


def test_a_pod_that_is_not_filtered_any_more_is_forgotten() -> None:
    assigner = assigner_of(node("n", gpu("g")))
    for uid in ("gone", "there"):
        assigner.filter(pod(uid, "200"), ["n"])
    assigner.forget_idle()
    assert {str(each) for each in assigner.waits()} == {"d/gone", "d/there"}
    assigner.filter(pod("there", "200"), ["n"])
    assigner.forget_idle()
    assert {str(each) for each in assigner.waits()} == {"d/there"}


@pytest.mark.parametrize("by_list", [True, False])
def test_a_pod_that_was_bound_waits_no_longer(by_list: bool) -> None:
    assigner = assigner_of(node("n", gpu("g")))
    assigner.filter(pod("p", "200"), ["n"])
    bound = pod("p", "200", on="elsewhere")
    if by_list:
        assigner.pods_listed([bound])
    else:
        assigner.pod_told("MODIFIED", bound)
    assert assigner.waits() == []
    assert assigner.asking("p") is None


def test_pods_that_ask_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASKING_MAX", 2)
    assigner = assigner_of(node("n", gpu("g")))
    for uid in ("p", "q", "p", "r"):
        assigner.filter(pod(uid, "200"), ["n"])
    assert {str(each) for each in assigner.waits()} == {"d/p", "d/r"}
    assigner.forget("p")
    assert assigner.asking("p") is None
    assert assigner.prioritize(pod("p", "50"), ["n"]) == {"n": 10}
