"""A budget: a rate on average, a burst at once."""

from edgeshare.units import NS_PER_S
from sharemgr.node.budget import Budget


def test_a_burst_is_there_at_once_and_comes_back_at_the_rate() -> None:
    budget = Budget(10, 5)
    assert [budget.spend(NS_PER_S) for _ in range(6)] == [True] * 5 + [False]
    assert budget.spend(NS_PER_S + 2 * NS_PER_S // 10)
    assert not budget.spend(NS_PER_S + 2 * NS_PER_S // 10)
    assert all(budget.spend(10 * NS_PER_S) for _ in range(5))


def test_what_was_spent_beyond_it_is_paid_back() -> None:
    budget = Budget(1, 2, per_s=60)
    assert not budget.spend(0, 4)
    assert not budget.spend(119 * NS_PER_S)
    assert budget.spend(10_000 * NS_PER_S)


def test_how_long_it_takes_until_it_may_be_done_again() -> None:
    budget = Budget(10, 5)
    now_ns = NS_PER_S
    while budget.spend(now_ns):
        assert budget.wait_ns(now_ns) == 0
    assert budget.wait_ns(now_ns) == NS_PER_S // 10
    assert budget.wait_ns(now_ns + NS_PER_S // 10) == 0
    assert budget.spend(now_ns + 2 * NS_PER_S // 10)
