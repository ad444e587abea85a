"""Models, exclusions and affinities that pods name keep them off GPUs, and bring them together."""

from tests.kit.assigner.deciding import assigner_of, gpu, node, place, pod


def test_models_bind() -> None:
    assigner = assigner_of(node("n", gpu("g", model="T4")), node("m", gpu("h", model="A10")))
    found = assigner.filter(pod("p", "10", models="A10,V100"), ["n", "m"])
    assert found.nodes == ["m"]
    assert found.failed == {"n": "10 units of one GPU: gpu 0: is of model T4"}


def test_an_exclusion_keeps_others_off_and_lets_its_own_in() -> None:
    assigner = assigner_of(node("n", gpu("g")))
    place(assigner, pod("a", "10", exclusion="x"), "n")
    assert assigner.filter(pod("p", "10"), ["n"]).failed == {
        "n": "10 units of one GPU: gpu 0: holds pods of exclusion 'x'"
    }
    assert assigner.filter(pod("q", "10", exclusion="y"), ["n"]).nodes == []
    assert assigner.filter(pod("r", "10", exclusion="x"), ["n"]).nodes == ["n"]


def test_an_exclusion_keeps_others_off_also_where_pods_of_several_were_bound_by_others() -> None:
    assigner = assigner_of(node("n", gpu("g")))
    on_g = '{"c0":["g"]}'
    assigner.pods_listed(
        [pod("a", "10", on="n", assignment=on_g, exclusion="x"), pod("b", "9", on="n", assignment=on_g)]
    )
    assert assigner.filter(pod("p", "10"), ["n"]).failed == {
        "n": "10 units of one GPU: gpu 0: holds pods of exclusion none and 'x'"
    }
    assert assigner.filter(pod("q", "10", exclusion="x"), ["n"]).nodes == []


def test_an_affinity_brings_pods_to_one_gpu_and_nowhere_else() -> None:
    assigner = assigner_of(node("n", gpu("g"), gpu("h")), node("m", gpu("i")), policy="spread")
    first = place(assigner, pod("a", "40", affinity="x"), "n")
    second = place(assigner, pod("b", "40", affinity="x"), "n")
    assert first.assignment == second.assignment
    found = assigner.filter(pod("c", "40", affinity="x"), ["n", "m"])
    assert found.nodes == []
    assert "is not that of its affinity" in found.failed["n"]
    assert "pods of its affinity share GPU" in found.failed["m"]
    assert assigner.filter(pod("d", "40", affinity="y"), ["n", "m"]).nodes == ["n", "m"]
