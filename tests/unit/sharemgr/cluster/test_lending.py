"""Lending policies: how much of a GPU's memory a pod is promised, and by what."""

from collections.abc import Sequence
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.lending import POLICIES, cbp, cbp_knots, pp
from sharemgr.cluster.lending.card import NO_SAMPLE_S, Asked, Card, Decision, Resident, Sample, Use, decide
from sharemgr.cluster.lending.window import since
from sharemgr.cluster.state.profiles import Ending, Profile, Run

GPU = "GPU-1"
USABLE_MIB = 32_000
NOW_S = 1000.0


def profile(peak_mib: int, time_to_peak_s: float = 20.0, use_mib: Sequence[int] = ()) -> Profile:
    return Profile.of(
        (
            Run(
                ended_at_s=1.0,
                ending=Ending.COMPLETED,
                limit_mib=10**6,
                peak_mib=peak_mib,
                time_to_peak_s=time_to_peak_s,
                flat_s=10.0,
                use_mib=tuple(use_mib),
            ),
        )
    )


def use(samples: Sequence[tuple[float, float]], since_s: float = 0.0) -> Use:
    found = Use(GPU, since_s, USABLE_MIB)
    for at_s, used_mib in samples:
        assert found.see(Sample(at_s, used_mib, GPU), at_s)
    return found


def pod(
    asked: Asked, samples: Sequence[tuple[float, float]] = (), bound_at_s: float = 0.0, promised_mib: int = 0
) -> Resident:
    return Resident(asked, bound_at_s, promised_mib or asked.limit_mib, use(samples, bound_at_s))


def card(*pods: Resident, samples: Sequence[tuple[float, float]] = ((NOW_S, 0.0),), bound_at_s: float = 0.0) -> Card:
    return Card(USABLE_MIB, use(samples), list(pods), bound_at_s)


def steady(mib: float, from_s: float = 900.0) -> list[tuple[float, float]]:
    return [(at_s, mib) for at_s in np.arange(from_s, NOW_S + 1, 7.0)]


def decision(
    policy: str, on: Card, asked: Asked, profiles: dict[str, Profile] | None = None, now_s: float = NOW_S
) -> Decision:
    return decide(POLICIES[policy], on, profiles or {}, asked, now_s)


BORROWER = Asked(1000, 20_000, "a")


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_guaranteed_is_promised_whatever_is_lent_and_is_never_over_committed(policy: str) -> None:
    full = card(pod(Asked(2000, 32_000, "a"), steady(30_000)), samples=steady(30_000))
    assert decision(policy, full, Asked(30_000, 30_000, "b")).promised_mib == 30_000
    refused = decision(policy, full, Asked(30_001, 30_001, "b"))
    assert refused.promised_mib is None
    assert "30000 are not guaranteed to others" in refused.reason
    assert decision(policy, full, Asked(30_001, 31_000, "b")).promised_mib is None


@pytest.mark.parametrize("policy", [name for name, policy in POLICIES.items() if policy.needs_samples])
@pytest.mark.parametrize("samples", [(), ((NOW_S - NO_SAMPLE_S - 1, 0.0),), ((NOW_S + 1, 0.0),)])
def test_without_samples_of_now_only_guarantees_are_promised_and_it_is_said(
    policy: str, samples: Sequence[tuple[float, float]]
) -> None:
    found = decision(policy, card(samples=samples), BORROWER)
    assert found.promised_mib == BORROWER.guarantee_mib
    assert found.reason == "no samples of what is in use: guarantees alone"
    assert decision(policy, card(samples=[(NOW_S, 0.0)]), BORROWER).promised_mib == BORROWER.limit_mib


def test_res_ag_believes_what_is_declared() -> None:
    there = card(pod(Asked(0, 12_000, "a")))
    assert decision("res-ag", there, BORROWER).promised_mib == 20_000
    assert decision("res-ag", there, Asked(0, 20_001, "a")).promised_mib is None


def test_cbp_lends_above_the_80th_percentile_of_what_is_in_use_while_it_is_steady() -> None:
    there = card(pod(Asked(0, 30_000, "a")), samples=steady(12_000))
    assert decision("cbp", there, BORROWER).promised_mib == 20_000
    assert decision("cbp", there, Asked(0, 20_001, "a")).promised_mib is None
    # Half of the time nothing, half of the time all: the free memory varies by as much as it is in the mean.
    unsteady = [(at_s, 31_000.0 * (index % 2)) for index, (at_s, _) in enumerate(steady(0))]
    there = card(pod(Asked(0, 30_000, "a")), samples=unsteady)
    assert decision("cbp", there, Asked(0, 2001, "a")).promised_mib is None
    assert "not steady" in decision("cbp", there, Asked(0, 2001, "a")).reason
    assert decision("cbp", there, Asked(0, 2000, "a")).promised_mib == 2000, "as by what is declared"


def test_cbp_looks_back_to_the_last_bind_and_20_seconds_at_least() -> None:
    grew = [(900.0, 5000.0), (980.0, 5000.0), (990.0, 20_000.0)]
    pods = (pod(Asked(0, 30_000, "a")),)
    assert decision("cbp", card(*pods, samples=grew, bound_at_s=995.0), Asked(0, 12_001, "b")).promised_mib is None
    assert decision("cbp", card(*pods, samples=grew, bound_at_s=900.0), Asked(0, 26_000, "b")).promised_mib == 26_000


SERIES = st.lists(st.floats(0, USABLE_MIB), min_size=12, max_size=60)


@given(SERIES)
def test_pp_predicts_by_least_squares_where_the_memory_resembles_what_it_was(values: list[float]) -> None:
    free = np.array(values)
    earlier, later = free[:-10], free[10:]
    predicted = pp.predict(free)
    if earlier.std() < 1e-3 or later.std() < 1e-3:
        return
    likeness = float(np.corrcoef(earlier, later)[0, 1])
    if abs(likeness - pp.LIKENESS_MIN) > 1e-6:
        assert (predicted is not None) == (likeness > pp.LIKENESS_MIN)
    if predicted is not None:
        slope, start = np.polyfit(earlier, later, 1)
        assert predicted == pytest.approx(start + slope * free[-10], rel=1e-6, abs=1e-3)


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=60))
def test_percentiles_are_interpolated(values: list[float]) -> None:
    assert cbp.percentile(np.array(values)) == pytest.approx(float(np.percentile(values, 80)))


def test_pp_lends_what_it_predicts_where_that_is_more() -> None:
    falling = [(at_s, max(0.0, 30_000 - 900 * (at_s - 960))) for at_s in np.arange(960.0, NOW_S + 1, 1.0)]
    there = card(pod(Asked(0, 30_000, "a")), samples=falling, bound_at_s=960.0)
    before, after = (decision(policy, there, Asked(0, 31_000, "b")).promised_mib for policy in ("cbp", "pp"))
    assert (before, after) == (None, 31_000)
    assert "predicted" in decision("pp", there, Asked(0, 31_000, "b")).reason


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


def test_cbp_knots_counts_a_pod_for_its_80th_percentile_where_it_is_unlike_those_there() -> None:
    ramp = (0, 200, 400, 5000, 5000, 5000)
    known = {"a": profile(5000, use_mib=ramp)}
    falling = pod(Asked(0, 30_000, "b"), [(900 + 7 * n, 9000 - mib) for n, mib in enumerate(ramp)], 0.0, 9000)
    rising = pod(Asked(0, 30_000, "b"), [(900 + 7 * n, mib) for n, mib in enumerate(ramp)], 0.0, 9000)
    assert decision("cbp-knots", card(falling), BORROWER, known).promised_mib == 5000
    assert decision("cbp-knots", card(rising), BORROWER, known).promised_mib == BORROWER.limit_mib
    assert decision("cbp-knots", card(falling), BORROWER).promised_mib == BORROWER.limit_mib, "no run is known"
    assert decision("cbp-knots", card(pod(Asked(0, 30_000, "b"))), BORROWER, known).promised_mib is None, "30,000 held"
    assert cbp_knots.correlation((1, 1, 1, 1), (1, 2, 3, 4)) == 0


def safe_room(there: Card, known: dict[str, Profile] | None = None, now_s: float = NOW_S) -> float:
    return POLICIES["safe"].room(there, known or {}, now_s).mib


SAFE = {
    "not known, in flight: its limit": (None, [(990.0, 4000.0)], 980.0, 20_000),
    "not known, settled: 1.5 of what was seen": (None, steady(4000), 900.0, 6000),
    "not known, settled, near its limit": (None, steady(15_000), 900.0, 20_000),
    "not known, settled, but only a bare context": (None, steady(300), 900.0, 20_000),
    "not known, of one level but too young": (None, steady(4000, 985.0), 985.0, 20_000),
    "not known, still rising": (None, [(900 + 7 * n, 1000 + 40 * n) for n in range(14)], 880.0, 20_000),
    "known, in flight: 1.25 of its peak": (4000, [(990.0, 100.0)], 980.0, 5000),
    "known, in flight, without a sample": (4000, [], 980.0, 5000),
    "known, in flight, above its peak": (4000, [(990.0, 6000.0)], 980.0, 7500),
    "known, settled: its peak": (4000, steady(3900), 900.0, 4000),
    "known, settled above its peak: 1.05 of what was seen": (4000, steady(8000), 900.0, 8400),
    "known, was above its peak, now below": (4000, [(980.0, 9000.0), *steady(2000, 985.0)], 800.0, 9450),
    "known to be below its guarantee": (500, steady(500), 900.0, 1000),
}


@pytest.mark.parametrize(("peak_mib", "samples", "bound_at_s", "held_mib"), SAFE.values(), ids=SAFE)
def test_safe_counts_a_pod_for_what_it_may_still_come_to_hold(
    peak_mib: int | None, samples: list[tuple[float, float]], bound_at_s: float, held_mib: int
) -> None:
    known = {"a": profile(peak_mib)} if peak_mib else {}
    assert USABLE_MIB - safe_room(card(pod(BORROWER, samples, bound_at_s)), known) == held_mib


def test_safe_waits_for_as_long_as_the_program_ever_took_to_its_peak() -> None:
    there = card(pod(BORROWER, steady(3900), 900.0))
    assert USABLE_MIB - safe_room(there, {"a": profile(4000, time_to_peak_s=99.0)}) == 4000
    assert USABLE_MIB - safe_room(there, {"a": profile(4000, time_to_peak_s=101.0)}) == 5000
    room = POLICIES["safe"].room(there, {"a": profile(4000, time_to_peak_s=101.0)}, NOW_S)
    assert room.until_s == 1001.0, "unless a sample comes, it has settled then"
    assert USABLE_MIB - safe_room(there, {"a": profile(4000, time_to_peak_s=101.0)}, room.until_s) == 4000


ASKING = {
    "not known: its limit": (None, [], 20_000),
    "not known, one of its program settled there: 1.5 of that": (None, [pod(BORROWER, steady(4000), 900.0)], 6000),
    "not known, one of its program in flight there": (None, [pod(Asked(0, 5000, "a"), [], 990.0)], 20_000),
    "not known, one of another settled there": (None, [pod(Asked(0, 5000, "b"), steady(4000), 900.0)], 20_000),
    "known: 1.25 of its peak": (4000, [], 5000),
    "known, and one settled there: 1.1 of its peak": (4000, [pod(BORROWER, steady(3000), 900.0)], 4400),
    "known, and one settled above: 1.1 of that": (4000, [pod(BORROWER, steady(8000), 900.0)], 8800),
}


@pytest.mark.parametrize(("peak_mib", "there", "promised_mib"), ASKING.values(), ids=ASKING)
def test_safe_promises_a_pod_what_it_may_come_to_hold(
    peak_mib: int | None, there: list[Resident], promised_mib: int
) -> None:
    known = {"a": profile(peak_mib)} if peak_mib else {}
    assert decision("safe", card(*there), BORROWER, known).promised_mib == promised_mib


def test_safe_refuses_what_does_not_fit_and_says_why() -> None:
    there = card(pod(Asked(0, 28_000, "b")))
    refused = decision("safe", there, BORROWER, {"a": profile(4000)})
    assert refused.promised_mib is None
    assert refused.reason == "5000 MiB (its profile), of which 4000 are free (less what its pods may come to hold)"


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


POD = st.builds(
    lambda guarantee, more, key, samples, bound_at_s: pod(
        Asked(guarantee, guarantee + more, key),
        [(bound_at_s + 7 * n, min(mib, USABLE_MIB)) for n, mib in enumerate(samples)],
        bound_at_s,
    ),
    st.integers(0, 4000),
    st.integers(0, 16_000),
    st.sampled_from("abc"),
    st.lists(st.sampled_from([0.0, 300.0, 4000.0, 4010.0, 9000.0]), max_size=8),
    st.floats(900, 940),
)
KNOWN = st.dictionaries(st.sampled_from("abc"), st.builds(profile, st.integers(1, 9000), st.floats(0, 90)))


@given(st.sampled_from(sorted(POLICIES)), st.lists(POD, max_size=5), KNOWN, POD, st.integers(0, 9000))
def test_a_promise_is_between_guarantee_and_limit_and_guarantees_fit(
    policy: str, pods: list[Resident], known: dict[str, Profile], asking: Resident, used_mib: int
) -> None:
    there, asked = card(*pods, samples=steady(used_mib)), asking.asked
    found = decision(policy, there, asked, known)
    if found.promised_mib is not None:
        assert asked.guarantee_mib <= found.promised_mib <= asked.limit_mib
        assert there.guaranteed_mib + asked.guarantee_mib <= USABLE_MIB
    again = decision(policy, there, asked, known)
    assert found == again, "nothing is kept between two questions"


@given(st.lists(POD, min_size=1, max_size=5), KNOWN)
def test_safe_never_promises_what_was_seen_in_use_or_is_guaranteed(
    pods: list[Resident], known: dict[str, Profile]
) -> None:
    kept = sum(max(each.asked.guarantee_mib, min(each.use.seen_mib, each.asked.limit_mib)) for each in pods)
    assert safe_room(card(*pods), known) <= USABLE_MIB - kept


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
