"""Whether what clients report adds up to what their device was busy."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.beside.measurement import Beside
from sharemgr.node.turns.share.trust import LIE_NS


def check(beside: Beside, reported_ns: int, pending_ns: int, busy_ns: int, now_ns: int) -> None:
    """Has turns taken where it does not add up: nobody knows who lies."""
    if not beside.check(reported_ns, pending_ns, busy_ns, now_ns):
        beside.lie(now_ns)


def checks(reported_ns: list[int], pending_ns: int = 0, busy_ns: int = S) -> list[bool]:
    """Whether it is turns after each check; they are a second apart."""
    beside, found = Beside(), []
    for second, each_ns in enumerate(reported_ns, 1):
        check(beside, each_ns, pending_ns, busy_ns, second * S)
        found.append(beside.in_turns)
    return found


@pytest.mark.parametrize("busy_ns", [S, S // 2, S // 4])
def test_who_hides_a_quarter_of_the_device_is_seen_within_two_checks(busy_ns: int) -> None:
    assert checks([busy_ns - S // 4] * 2, busy_ns=busy_ns)[-1]


def test_who_hides_a_tenth_is_seen_in_the_end() -> None:
    assert checks([S * 9 // 10] * 5)[-1]


def test_costs_that_are_somewhat_wrong_are_no_lie() -> None:
    assert not any(checks([S * 96 // 100] * 1000))


def test_a_check_that_comes_before_the_pages_were_written_is_made_up_for_by_the_next() -> None:
    assert not any(checks([S - 90 * MS, S + 90 * MS] * 100))


@pytest.mark.parametrize("kernel_ms", [1, 90, 110, 333, 400, 700, 999, 1000])
@pytest.mark.parametrize("begins_ms", [0, 1, 500, 999])
def test_long_kernels_that_are_reported_at_their_end_are_no_lies(kernel_ms: int, begins_ms: int) -> None:
    beside, ended = Beside(), 0
    for second in range(1, 200):
        since_ms = 1000 * second - begins_ms
        before, ended = ended, since_ms // kernel_ms
        busy_ns = (1000 - begins_ms) * MS if second == 1 else S
        check(beside, (ended - before) * kernel_ms * MS, since_ms % kernel_ms * MS, busy_ns, second * S)
        assert not beside.in_turns


def test_a_kernel_of_which_nothing_is_ever_reported_is_a_lie() -> None:
    assert checks([0, 0, 0], pending_ns=60 * S)[-1]


def test_who_reports_more_than_there_was_time_for_is_seen() -> None:
    assert checks([3 * S]) == [True]
    assert checks([S * 3 // 2] * 3) == [False, False, True]


def test_what_was_told_late_once_is_no_lie() -> None:
    assert not any(checks([S, S * 3 // 2, *[S] * 10]))


def test_turns_last_for_half_a_minute_and_for_longer_where_it_goes_on() -> None:
    beside = Beside()
    check(beside, 0, 0, S, S)
    beside.look(S + LIE_NS - 1)
    assert beside.in_turns
    beside.look(S + LIE_NS)
    assert not beside.in_turns
    check(beside, 0, 0, S, 2 * S + LIE_NS)
    beside.look(2 * S + 2 * LIE_NS)
    assert beside.in_turns


def test_a_lie_while_it_is_turns_has_them_last_for_longer() -> None:
    beside = Beside()
    check(beside, 0, 0, S, S)
    check(beside, 0, 0, S, LIE_NS)
    beside.look(S + LIE_NS)
    assert beside.in_turns
    beside.look(2 * LIE_NS)
    assert not beside.in_turns


def turns_after_a_lie_ns(honest_ns: int) -> int:
    """How long turns last after a fourth lie, when nobody has lied for so long since those for the third were over."""
    beside, now_ns = Beside(), S
    for _ in range(3):
        check(beside, 0, 0, S, now_ns)
        while beside.in_turns:
            now_ns += S
            beside.look(now_ns)
    for _ in range(honest_ns // S):
        now_ns += S
        check(beside, S, 0, S, now_ns)
        assert not beside.in_turns
    began_ns = now_ns = now_ns + S
    check(beside, 0, 0, S, now_ns)
    while beside.in_turns:
        now_ns += S
        beside.look(now_ns)
    return now_ns - began_ns


def test_turns_after_a_lie_last_as_long_as_the_first_ones_when_nobody_lied_for_twice_as_long() -> None:
    assert turns_after_a_lie_ns(S) == 8 * LIE_NS
    assert turns_after_a_lie_ns(15 * LIE_NS) == 8 * LIE_NS
    assert turns_after_a_lie_ns(17 * LIE_NS) == LIE_NS
