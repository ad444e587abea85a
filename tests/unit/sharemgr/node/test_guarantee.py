"""What an allocation wanted, was due and got; for how long it got less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.guarantee import Guarantee
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from sharemgr.node.guarantee import Misses, judge

WINDOW_NS = 10 * NS_PER_S


@pytest.mark.parametrize(
    ("got_ms", "waited_ms", "expected"),
    [
        # Always busy: what it gets while others have the rest.
        (3000, 7000, Guarantee(100, 30, 30)),
        # Lent more than it requested.
        (6000, 4000, Guarantee(100, 30, 60)),
        # It thinks for three quarters of the time, and waits for nobody.
        (2500, 0, Guarantee(25, 25, 25)),
        # It thinks, and waits for most of the time: it would use more than its request alone.
        (1000, 8000, Guarantee(50, 30, 10)),
        (0, 0, Guarantee(0, 0, 0)),
        # It waits for all of the window.
        (0, 10_000, Guarantee(100, 30, 0)),
        (0, 1, Guarantee(100, 30, 0)),
    ],
)
def test_it_wanted_what_it_used_while_it_did_not_wait(got_ms: int, waited_ms: int, expected: Guarantee) -> None:
    assert judge(30, got_ms * NS_PER_MS, waited_ms * NS_PER_MS, WINDOW_NS) == expected


@pytest.mark.parametrize(
    ("got_percent", "due_percent", "ratio", "missed"),
    [
        (10, 30, 1 / 3, True),
        (60, 30, 1, False),
        (0, 0, 1, False),
        # Less than a twentieth of what was due, and less than half a point: the rule may be off by so much.
        (28.6, 30, 28.6 / 30, False),
        (28.4, 30, 28.4 / 30, True),
        (0.6, 1, 0.6, False),
        (0.4, 1, 0.4, True),
    ],
)
def test_a_guarantee_is_missed_by_more_than_the_rule_may_be_off(
    got_percent: float, due_percent: float, ratio: float, missed: bool
) -> None:
    guarantee = Guarantee(100, due_percent, got_percent)
    assert guarantee.met_ratio == pytest.approx(ratio)
    assert guarantee.missed == missed


@given(st.integers(1, 100), st.integers(0, WINDOW_NS), st.integers(0, WINDOW_NS))
def test_nobody_is_due_more_than_it_wanted_or_requested(request_percent: int, got_ns: int, waited_ns: int) -> None:
    found = judge(request_percent, got_ns, waited_ns, WINDOW_NS)
    assert 0 <= found.due_percent <= min(found.wanted_percent, request_percent)
    assert found.wanted_percent <= 100
    assert 0 <= found.met_ratio <= 1


def test_seconds_in_which_it_was_missed_add_up_and_go_with_the_allocation() -> None:
    misses = Misses()
    # Nobody has looked before: for how long is not known.
    misses.look(["a"], 100 * NS_PER_S)
    assert misses.missed_ns("a") == 0
    misses.look(["a", "b"], 101 * NS_PER_S)
    misses.look(["b"], 103 * NS_PER_S)
    assert (misses.missed_ns("a"), misses.missed_ns("b")) == (NS_PER_S, 3 * NS_PER_S)
    misses.forget("b")
    misses.look([], 104 * NS_PER_S)
    assert (misses.missed_ns("a"), misses.missed_ns("b")) == (NS_PER_S, 0)
