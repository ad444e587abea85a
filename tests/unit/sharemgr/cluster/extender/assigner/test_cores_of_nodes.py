"""Cores of nodes and pods: what they change in the assigner's choice, and what is for kube-scheduler to say."""

import json

from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.state.cores import Cores, Offer
from tests.kit.assigner.deciding import assigner_of, gpu, node, place, pod


def with_cores(**cpu_milli: int) -> Assigner:
    """Nodes of one GPU and so many millicores."""
    assigner = assigner_of(*(node(name, gpu(f"{name}-g")) for name in cpu_milli))
    assigner.offers_listed([Offer(name, Cores(cpu, 64_000)) for name, cpu in cpu_milli.items()])
    return assigner


def test_a_gpu_is_kept_from_pods_that_would_leave_it_without_cores() -> None:
    assigner = with_cores(few=9000, many=64_000)
    for number in range(20):
        assigner.filter(pod(f"seen{number}", "50", cpu="4"), [])
    large, small = pod("large", "50", cpu="8"), pod("small", "50", cpu="500m")
    for asking, best in ((large, "many"), (small, "few")):
        assigner.filter(asking, ["few", "many"])
        assert assigner.prioritize(asking, ["few", "many"])[best] == 10
    assigner.offer_told("DELETED", Offer("few", Cores()))
    assigner.offer_told("MODIFIED", Offer("many", Cores(9000, 64_000)))
    assigner.filter(large, ["few", "many"])
    assert assigner.prioritize(large, ["few", "many"])["few"] == 10


def test_whether_a_node_has_the_cores_is_for_kube_scheduler_to_say() -> None:
    assigner = with_cores(n=1000)
    asking = pod("p", "50", cpu="4")
    assert assigner.filter(asking, ["n"]).nodes == ["n"]
    assert place(assigner, asking, "n").node == "n"
    assert assigner.filter(pod("q", "50", cpu="4"), ["n"]).nodes == ["n"]
    again = pod("q", "50", cpu="4")
    assigner.forget("q")
    assert place(assigner, again, "n").node == "n"


def test_kube_scheduler_is_told_to_try_again_where_the_cores_are_there_too() -> None:
    assigner = with_cores(n=1000, m=8000)
    for uid, name in (("a", "n"), ("b", "m")):
        assigner.pod_told("ADDED", pod(uid, "60", on=name, assignment=json.dumps({"c0": [f"{name}-g"]})))
    assert assigner.filter(pod("p", "50", cpu="4"), ["n", "m"]).nodes == []
    assert assigner.fits_now() is None
    assigner.pod_told("DELETED", pod("a", "60", on="n"))
    assert assigner.fits_now() is None
    assigner.pod_told("DELETED", pod("b", "60", on="m"))
    assert assigner.fits_now() == "m"


def test_a_pod_that_asks_for_no_cores_needs_none_where_others_have_more_than_there_are() -> None:
    assigner = with_cores(n=1000)
    on_n = pod("a", "60", on="n", assignment='{"c0":["n-g"]}')
    assigner.pod_told("ADDED", on_n)
    assigner.pod_told("ADDED", pod("without", on="n", cpu="2"))
    assigner.pod_told("ADDED", pod("greedy", "10", on="n", cpu="2", assignment='{"c0":["n-g"]}'))
    assert assigner.filter(pod("p", "50"), ["n"]).nodes == []
    assigner.pod_told("DELETED", on_n)
    assert assigner.fits_now() == "n"
