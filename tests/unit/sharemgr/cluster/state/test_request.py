"""The orders in which a pod's containers are placed."""

from itertools import permutations

from sharemgr.cluster.state.request import ORDERS_MAX, Ask, Request


def orders(*units: int) -> list[tuple[int, ...]]:
    """As the units that are placed, one after the other."""
    request = Request(tuple(Ask(1, each) for each in units))
    return [tuple(units[number] for number in order) for order in request.orders()]


def test_the_largest_come_first_and_no_order_comes_twice() -> None:
    for units in ((), (5,), (1, 2), (2, 2), (1, 2, 2), (3, 1, 2), (4, 4, 1, 1), (1, 2, 3, 4)):
        found = orders(*units)
        assert found[0] == tuple(sorted(units, reverse=True))
        assert sorted(found) == sorted(set(permutations(units)))


def test_of_many_containers_some_orders_are_given_at_once() -> None:
    assert orders(*[1] * 1600) == [(1,) * 1600]
    assert len(orders(*range(1, 300))) == ORDERS_MAX
    assert len(set(orders(50, 40, *[4] * 6))) == ORDERS_MAX
