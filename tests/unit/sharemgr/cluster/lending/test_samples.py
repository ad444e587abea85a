"""Samples of what is in use: which are believed, and what is made of them."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.lending.card import Asked, Resident, Sample
from sharemgr.cluster.lending.window import since
from sharemgr.cluster.state.profiles import Profile
from tests.kit.assigner.lending import (
    BORROWER,
    GPU,
    KNOWN,
    NOW_S,
    POD,
    USABLE_MIB,
    card,
    decision,
    pod,
    safe_room,
    steady,
    use,
)


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0, 9000)), max_size=80), st.floats(-10, 300), st.floats(0, 400))
def test_a_window_has_the_last_value_of_each_whole_second(
    steps: list[tuple[float, float]], bound_at_s: float, now_s: float
) -> None:
    samples, at_s = [], 0.0
    for step_s, mib in steps:
        at_s += step_s
        if at_s <= now_s:
            samples.append((at_s, mib))
    last = int(now_s // 1)
    first = min(int(-(-max(bound_at_s, 0) // 1)), last - 19)
    expected = []
    for second in range(first, last + 1):
        known = [mib for sampled_s, mib in samples if sampled_s <= second]
        expected += known[-1:]
    assert since(use(samples), bound_at_s, now_s).tolist() == expected


ABSURD = {
    "below zero": Sample(NOW_S, -1.0, GPU),
    "no number": Sample(NOW_S, nan, GPU),
    "without end": Sample(NOW_S, inf, GPU),
    "more than there is": Sample(NOW_S, USABLE_MIB + 1.0, GPU),
    "another card's": Sample(NOW_S, 1.0, "GPU-2"),
    "late": Sample(NOW_S - 20, 1.0, GPU),
    "of the future": Sample(NOW_S + 1, 1.0, GPU),
    "at no time": Sample(nan, 1.0, GPU),
}


@pytest.mark.parametrize("sample", ABSURD.values(), ids=ABSURD)
def test_a_sample_that_cannot_be_changes_nothing_and_is_counted(sample: Sample) -> None:
    there = card(pod(BORROWER, [(NOW_S - 10, 9000.0)], 0.0))
    seen = there.residents[0].use
    before = (list(seen.samples), seen.seen_mib, seen.flat_s, safe_room(there))
    assert not seen.see(sample, NOW_S)
    assert (list(seen.samples), seen.seen_mib, seen.flat_s, safe_room(there)) == before
    assert seen.refused == 1


def test_a_gap_or_a_fall_begins_a_new_level_and_what_was_seen_remains_seen() -> None:
    seen = use([(0, 5000), (7, 5000), (14, 5000)])
    assert seen.flat_s == 14
    seen.see(Sample(40.0, 5000.0, GPU), 40.0)
    assert seen.flat_s == 0, "nobody knows what was in the time between"
    seen.see(Sample(47.0, 0.0, GPU), 47.0)
    seen.see(Sample(54.0, 0.0, GPU), 54.0)
    assert (seen.flat_s, seen.seen_mib) == (0, 5000)


def test_a_slow_rise_is_not_of_one_level() -> None:
    seen = use([(7.0 * step, 5000 * 1.015**step) for step in range(20)])
    assert seen.flat_s <= 7


def test_a_clock_that_went_back_makes_all_unsettled_until_samples_come_again() -> None:
    there = card(pod(BORROWER, steady(4000), 900.0), samples=steady(4000))
    assert USABLE_MIB - safe_room(there) == 6000
    now_s = 500.0
    assert decision("safe", there, Asked(10, 5000, "b"), now_s=now_s).promised_mib == 10
    assert USABLE_MIB - safe_room(there, now_s=now_s) == 20_000
    for at_s in (500.0, 507.0, 514.0):
        assert there.use.see(Sample(at_s, 4000.0, GPU), at_s)
        assert there.residents[0].use.see(Sample(at_s, 4000.0, GPU), at_s)
    assert decision("safe", there, Asked(10, 5000, "b"), now_s=514.0).promised_mib == 5000


@given(st.lists(POD, min_size=1, max_size=4), KNOWN, st.integers(0, 3), st.sampled_from(sorted({*ABSURD} - {"late"})))
def test_samples_that_are_absurd_lower_nothing(
    pods: list[Resident], known: dict[str, Profile], which: int, absurd: str
) -> None:
    there = card(*pods)
    before = safe_room(there, known)
    assert not pods[which % len(pods)].use.see(ABSURD[absurd], NOW_S)
    assert safe_room(there, known) == before


def test_a_sample_from_before_the_bind_is_somebody_elses() -> None:
    there = card(pod(BORROWER, bound_at_s=NOW_S - 50))
    assert not there.residents[0].use.see(Sample(NOW_S - 51, 500.0, GPU), NOW_S)
    assert USABLE_MIB - safe_room(there) == BORROWER.limit_mib
