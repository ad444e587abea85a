"""What prioritize says of nodes: the best alone has 10."""

from tests.kit.assigner.deciding import many, place, pod


def test_the_best_alone_has_10_and_ranks_are_spread_below() -> None:
    names, assigner = many(40)
    for number, name in enumerate(names):
        place(assigner, pod(f"a{number}", str(number + 1)), name)
    asking = pod("p", "5")
    assigner.filter(asking, names)
    scores = assigner.prioritize(asking, names)
    assert list(scores) == names
    counted = [list(scores.values()).count(score) for score in range(10, 4, -1)]
    assert counted == [1, 2, 4, 8, 16, 9]


def test_equal_nodes_have_one_best_too() -> None:
    names, assigner = many(600)
    scores = assigner.prioritize(pod("p", "5"), names)
    assert sorted(scores.values())[-3:] == [9, 9, 10]
    assert set(scores.values()) == set(range(1, 11))


def test_a_node_that_cannot_hold_the_pod_has_no_score() -> None:
    names, assigner = many(3)
    place(assigner, pod("a", "100"), "n001")
    assert assigner.prioritize(pod("p", "5"), [*names, "unknown"])["n001"] == 0
    assert assigner.prioritize(pod("p", "5"), [*names, "unknown"])["unknown"] == 0
