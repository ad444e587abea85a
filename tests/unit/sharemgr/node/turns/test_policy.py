"""The rule: virtual time, credit and debt, who is picked, limit, budget, anticipation."""

from itertools import groupby, pairwise

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.policy import Competition
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.share.latency import is_urgent
from sharemgr.node.turns.share.limit import change_limit, charge_limit, throttled_until_ns
from sharemgr.node.turns.share.standing import Standing

SETTINGS = Settings()


def standing(request_percent: int, *, limit_percent: int = 100, latency: bool = False) -> Standing:
    return Standing(Share(request_percent, limit_percent, latency), SETTINGS, 0)


def competition(*standings: Standing) -> Competition:
    entered = Competition(SETTINGS)
    for each in standings:
        entered.enter(each, 0)
    return entered


def test_the_lags_of_those_that_compete_add_up_to_nothing() -> None:
    a, b, c = standing(50), standing(30), standing(20)
    race = competition(a, b, c)
    race.charge(a, 7 * MS)
    race.charge(b, 2 * MS)
    assert abs(sum(race.lag_ns(each) for each in (a, b, c))) <= 3
    assert race.lag_ns(a) == pytest.approx(0.5 * 9 * MS - 7 * MS, abs=2)
    assert race.lag_ns(c) == pytest.approx(0.2 * 9 * MS, abs=2)


def had_a_turn(race: Competition, each: Standing, cost_ns: int) -> None:
    race.charge(each, cost_ns)
    race.end_turn(each)


def test_between_two_long_turns_who_waits_has_its_part_of_one() -> None:
    """Ten that are due at once, each of which holds the device for twenty slices."""
    honest = [standing(60), standing(20)]
    race = competition(*honest)
    for _ in range(2):
        for each in honest:
            had_a_turn(race, each, SETTINGS.slice_ns)
    hogs = [standing(1) for _ in range(10)]
    for each in hogs:
        race.enter(each, 0)
    order: list[Standing] = []
    while any(each not in order for each in hogs):
        picked = race.pick([*honest, *hogs])
        assert picked is not None
        had_a_turn(race, picked, SETTINGS.slice_ns * (20 if picked in hogs else 1))
        order.append(picked)
    places = [place for place, each in enumerate(order) if each in hogs]
    between = [order[before + 1 : after] for before, after in pairwise(places)]
    for each in honest:
        had = [turns.count(each) for turns in between]
        # As soon as that may be: nobody is kept from what it is due.
        assert min(had) == pytest.approx(20 * each.request_percent / 90, abs=1)
    # None has its part at one time, while the other waits.
    assert max(len(list(row)) for turns in between for _, row in groupby(turns, id)) <= 4


def test_what_comes_off_a_charge_is_not_owed_for_a_long_turn() -> None:
    a, b, long = standing(40), standing(40), standing(20)
    race = competition(a, b, long)
    for each in (a, b):
        had_a_turn(race, each, SETTINGS.slice_ns)
    had_a_turn(race, long, SETTINGS.slice_ns * 20)
    while race.lag_ns(long) <= 0:
        for each in (a, b):
            had_a_turn(race, each, SETTINGS.slice_ns)
    race.charge(a, -MS)
    race.charge(b, SETTINGS.slice_ns * 4)
    assert race.lag_ns(a) > 0
    long.deadline = min(a.deadline, b.deadline) - MS
    assert race.pick([a, long]) is long


def test_one_that_is_alone_owes_nothing() -> None:
    a = standing(10)
    race = competition(a)
    race.charge(a, 3600 * S)
    assert race.lag_ns(a) == 0


def test_one_that_comes_for_the_first_time_has_neither_credit_nor_debt() -> None:
    a, b, late = standing(50), standing(25), standing(25)
    race = competition(a, b)
    race.charge(a, 100 * MS)
    race.charge(b, 20 * MS)
    before = race.lag_ns(a)
    race.enter(late, S)
    assert race.lag_ns(late) == 0
    assert race.lag_ns(a) == pytest.approx(before, abs=2)


@pytest.mark.parametrize(
    ("held_by_rival_ns", "away_ns", "lag_ns"),
    [
        (4 * MS, 0, 2 * MS),  # all it lagged
        (24 * MS, 0, 2_500 * US),  # at most L (1 − r)
        (40 * MS, 0, 20 * MS),  # of a long turn its part
        (4 * MS, 19 * MS, 2 * MS),
        (4 * MS, 20 * MS, 0),  # gone after 4 L
    ],
)
def test_credit_is_small_and_short_lived(held_by_rival_ns: int, away_ns: int, lag_ns: int) -> None:
    a, b = standing(50), standing(50)
    race = competition(a, b)
    race.charge(b, held_by_rival_ns)
    race.leave(a, S)
    race.enter(a, S + away_ns)
    assert race.lag_ns(a) == pytest.approx(lag_ns, abs=2)


@pytest.mark.parametrize(
    ("held_ns", "away_ns", "lag_ns"),
    [
        (10 * MS, 0, -5 * MS),
        (10 * MS, 4 * MS, -3 * MS),  # half a nanosecond for each one away: its request is half the device
        (10 * MS, 10 * MS, 0),
        (10 * MS, 3600 * S, 0),  # and no credit from it
    ],
)
def test_debt_is_kept_but_for_what_staying_would_have_earned(held_ns: int, away_ns: int, lag_ns: int) -> None:
    a, b = standing(50), standing(50)
    race = competition(a, b)
    race.charge(a, held_ns)
    race.leave(a, S)
    race.enter(a, S + away_ns)
    assert race.lag_ns(a) == pytest.approx(lag_ns, abs=2)


def test_leaving_and_coming_back_changes_nothing_for_the_others() -> None:
    a, b, c = standing(40), standing(35), standing(25)
    race = competition(a, b, c)
    race.charge(a, 6 * MS)
    race.charge(b, 1 * MS)
    before = race.lag_ns(b), race.lag_ns(c)
    for _ in range(100):
        race.leave(a, S)
        race.enter(a, S)
    assert (race.lag_ns(b), race.lag_ns(c)) == pytest.approx(before, abs=200)


def test_a_debt_beyond_the_window_is_forgiven() -> None:
    a, b = standing(50), standing(50)
    race = competition(a, b)
    race.charge(a, 3600 * S)
    race.cap_debt(a)
    assert race.lag_ns(a) == pytest.approx(-10 * S, abs=2)
    assert race.lag_ns(b) == pytest.approx(10 * S, abs=2)


@pytest.mark.parametrize(
    ("requests", "held_ms", "picked"),
    [
        ([70, 30], [0, 0], 0),  # all eligible: the earliest deadline
        ([30, 70], [0, 0], 1),
        ([50, 50], [0, 0], 0),  # the first of equals
        ([70, 30], [5, 0], 1),  # the first is ahead of its part
        ([70, 30], [5, 5], 0),  # and here the second
        ([60, 30, 10], [10, 5, 0], 2),
        ([60, 30, 10], [5, 0, 0], 1),
    ],
)
def test_the_earliest_deadline_among_those_not_ahead_is_picked(
    requests: list[int], held_ms: list[int], picked: int
) -> None:
    standings = [standing(request) for request in requests]
    race = competition(*standings)
    for each, held in zip(standings, held_ms, strict=True):
        race.charge(each, held * MS)
    assert race.pick(standings) is standings[picked]


def test_where_nobody_that_can_be_granted_is_eligible_the_one_least_ahead_is_picked() -> None:
    behind, a, b = standing(20), standing(40), standing(40)
    race = competition(behind, a, b)
    race.charge(a, 5 * MS)
    race.charge(b, 4 * MS)
    assert race.pick([a, b]) is b
    assert race.pick([]) is None


def test_the_deadline_follows_the_longest_of_the_recent_turns_up_to_four_slices() -> None:
    a = standing(50)
    race = competition(a)
    for turn_ns, cost_ns in ((1 * MS, 5 * MS), (12 * MS, 12 * MS), (10 * S, 20 * MS)):
        race.charge(a, turn_ns)
        race.end_turn(a)
        assert a.deadline - a.v == 2 * cost_ns
    for _ in range(100):
        race.charge(a, 5 * MS)
        race.end_turn(a)
    assert a.deadline - a.v == pytest.approx(2 * 5 * MS, rel=0.01)


def test_a_change_of_request_keeps_the_virtual_time() -> None:
    a, b = standing(50), standing(50)
    race = competition(a, b)
    race.charge(a, 8 * MS)
    race.charge(b, 8 * MS)
    race.change_request(a, 10)
    assert race.lag_ns(a) == race.lag_ns(b) == 0
    race.charge(b, 6 * MS)
    assert race.lag_ns(a) == pytest.approx(1 * MS, abs=2)


def test_anticipation_is_twice_the_usual_think_time_within_its_limit() -> None:
    def after(think_ns: int, times: int = 100) -> int:
        each = standing(50)
        for _ in range(times):
            each.learn_think(think_ns, SETTINGS.anticipation_ns)
        return each.anticipation_ns(SETTINGS.anticipation_ns)

    assert after(0, times=0) == 300 * US  # not known yet
    assert after(30 * US) == pytest.approx(60 * US, rel=0.01)
    assert after(200 * US) == 300 * US
    assert after(310 * US) == 0
    assert after(10 * S) == 0


def test_one_long_pause_among_many_short_ones_does_not_end_the_anticipation() -> None:
    each = standing(50)
    for _ in range(100):
        each.learn_think(30 * US, SETTINGS.anticipation_ns)
    each.learn_think(60 * S, SETTINGS.anticipation_ns)
    assert each.anticipation_ns(SETTINGS.anticipation_ns) >= 60 * US


@pytest.mark.parametrize(
    ("limit_percent", "gpu_ns", "until_ns"),
    [
        (100, 10 * S, 0),
        (50, 10 * MS, 20 * MS - 50 * MS),
        (50, 40 * MS, 30 * MS),
        (1, 5 * MS, 450 * MS),
    ],
)
def test_a_limit_lets_run_ahead_by_its_burst(limit_percent: int, gpu_ns: int, until_ns: int) -> None:
    each = standing(1, limit_percent=limit_percent)
    charge_limit(each, gpu_ns)
    assert throttled_until_ns(each, SETTINGS) == until_ns


def test_gpu_time_used_ahead_of_a_limit_stays_so_when_the_limit_changes() -> None:
    each = standing(1, limit_percent=10)
    charge_limit(each, 20 * MS)
    change_limit(each, 50, 100 * MS)
    assert each.tat_ns == 100 * MS + 20 * MS  # 10 ms of GPU time ahead, at the new rate
    change_limit(each, 20, 300 * MS)
    assert each.tat_ns == 120 * MS


def test_the_latency_budget_is_the_requests_part_of_each_period() -> None:
    each = standing(30, latency=True)
    race = competition(each)
    race.enter(other := standing(70), 0)
    assert is_urgent(each, 0, SETTINGS)
    race.charge(each, 15 * MS)
    assert not is_urgent(each, 49 * MS, SETTINGS)
    assert is_urgent(each, 50 * MS, SETTINGS)
    race.charge(each, 40 * MS)  # overran: 25 ms are carried on
    assert not is_urgent(each, 100 * MS, SETTINGS)
    assert is_urgent(each, 150 * MS, SETTINGS)
    assert not is_urgent(other, 150 * MS, SETTINGS)


def test_waking_renews_a_budget_that_would_last_beyond_its_period() -> None:
    each = standing(30, latency=True)
    race = competition(each)
    race.charge(each, 8 * MS)
    race.leave(each, 10 * MS)
    race.enter(each, 20 * MS)  # 7 ms left for 30 ms: less than its part
    assert each.period_end_ns == 50 * MS
    race.leave(each, 20 * MS)
    race.enter(each, 40 * MS)  # 7 ms left for 10 ms
    assert each.period_end_ns == 90 * MS
    assert each.budget_ns == 15 * MS


def test_of_several_urgent_ones_the_one_whose_period_ends_first_is_picked() -> None:
    race = Competition(SETTINGS)
    late, early, batch = standing(20, latency=True), standing(20, latency=True), standing(60)
    race.enter(early, 0)
    race.enter(late, 10 * MS)
    race.enter(batch, 10 * MS)
    assert race.pick_urgent([batch, late, early], 20 * MS) is early
    race.charge(early, 10 * MS)
    assert race.pick_urgent([batch, late, early], 30 * MS) is late
    assert race.pick_urgent([batch], 30 * MS) is None
