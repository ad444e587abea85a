"""What the demo expects by the rule, and how it judges."""

import pytest

from edgeshare.cli.demo_plan import (
    SETTLE_NS,
    WORKLOADS,
    Phase,
    Tally,
    Verdict,
    Workload,
    expected_percents,
    judge_phase,
    make_phases,
    rule_percents,
)
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import NS_PER_S
from simgpu.stage.executed import Interval, executed_ns

PHASES = make_phases(30)


def workload(name: str, request: int, limit: int = 100) -> Workload:
    return Workload(name, gpu=0, request_percent=request, limit_percent=limit, pauses=False)


def test_a_full_device_is_divided_as_requested() -> None:
    assert rule_percents([workload("a", 50), workload("b", 30), workload("c", 20)]) == {
        "a": 50.0,
        "b": 30.0,
        "c": 20.0,
    }


def test_what_is_left_over_is_shared_in_proportion_to_the_requests() -> None:
    assert rule_percents([workload("b", 30), workload("c", 20)]) == {"b": 60.0, "c": 40.0}


def test_one_alone_gets_the_device() -> None:
    assert rule_percents([workload("a", 1)]) == {"a": 100.0}


def test_a_limit_holds_and_the_rest_goes_to_the_others() -> None:
    got = rule_percents([workload("a", 20, limit=25), workload("b", 20), workload("c", 40)])
    assert got == {"a": 25.0, "b": 25.0, "c": 50.0}


def test_limits_may_leave_the_device_idle() -> None:
    assert rule_percents([workload("a", 25, limit=25), workload("b", 25, limit=25)]) == {"a": 25.0, "b": 25.0}


def test_a_limit_that_binds_only_after_another_one_did_holds_too() -> None:
    got = rule_percents([workload("a", 50, limit=50), workload("b", 20, limit=30), workload("c", 10)])
    assert got == {"a": 50.0, "b": 30.0, "c": 20.0}


def test_the_demo_lends_the_paused_share_as_60_to_40_and_takes_it_back() -> None:
    phases = make_phases(30)
    shares = [expected_percents(WORKLOADS, phase) for phase in phases]
    assert [[s["red"], s["green"], s["blue"], s["alone"]] for s in shares] == [
        [50.0, 30.0, 20.0, 100.0],
        [0.0, 60.0, 40.0, 100.0],
        [50.0, 30.0, 20.0, 100.0],
    ]


def test_thirds_follow_each_other_and_the_first_two_seconds_of_each_are_not_judged() -> None:
    phases = make_phases(30)
    assert [(p.begin_ns, p.end_ns) for p in phases] == [
        (0, 10 * NS_PER_S),
        (10 * NS_PER_S, 20 * NS_PER_S),
        (20 * NS_PER_S, 30 * NS_PER_S),
    ]
    assert [p.judged_from_ns - p.begin_ns for p in phases] == [SETTLE_NS] * 3


def test_a_demo_too_short_to_judge_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidRequest, match="--seconds 5 is too short") as caught:
        make_phases(5)
    assert "\n" not in str(caught.value)


def judged(red_ns: int, phase: Phase = PHASES[0]) -> Verdict:
    """The verdict on a phase whose judged part lasts 8 s, with all shares but one as the rule says."""
    totals_ns = {"red": red_ns, "green": 2_400_000_000, "blue": 1_600_000_000, "alone": 8_000_000_000}
    if phase.paused:
        totals_ns |= {"green": 4_800_000_000, "blue": 3_200_000_000}
    return Verdict((judge_phase(WORKLOADS, phase, totals_ns),))


@pytest.mark.parametrize("red_ns", [3_921_000_000, 4_000_000_000, 4_079_000_000])
def test_a_share_within_a_point_of_the_rule_passes(red_ns: int) -> None:
    verdict = judged(red_ns)
    assert verdict.ok
    assert verdict.failures() == []


@pytest.mark.parametrize("red_ns", [0, 3_919_000_000, 4_081_000_000, 8_000_000_000])
def test_a_share_more_than_a_point_off_fails_and_is_named(red_ns: int) -> None:
    verdict = judged(red_ns)
    assert not verdict.ok
    assert len(verdict.failures()) == 1
    assert "red" in verdict.failures()[0]


def test_one_bad_phase_fails_the_whole() -> None:
    good, bad = judged(4_000_000_000), judged(3_000_000_000)
    assert not Verdict(good.phases + bad.phases).ok
    assert Verdict(good.phases + good.phases).ok


def test_a_workload_that_executed_nothing_fails_unless_it_had_to() -> None:
    assert judged(0, PHASES[1]).ok
    assert not judged(0, PHASES[0]).ok
    assert not judged(100_000_000, PHASES[1]).ok


def test_executed_time_counts_only_what_lies_within_the_window() -> None:
    ran = [Interval("a", 0, 10), Interval("b", 10, 30), Interval("a", 30, 40)]
    assert executed_ns(ran, 5, 35) == {"a": 10, "b": 20}


def test_only_the_judged_part_of_each_phase_counts() -> None:
    tally = Tally(PHASES, recent_window_ns=NS_PER_S)
    for phase in PHASES:
        settled_ns, at_ns = phase.judged_from_ns, phase.begin_ns
        judged_ns = phase.end_ns - settled_ns
        # What is not judged: all to one. What is judged: as the rule says, one after the other.
        tally.add([Interval("blue", at_ns, settled_ns)])
        at_ns = settled_ns
        for name, percent in expected_percents(WORKLOADS[:3], phase).items():
            until_ns = at_ns + round(judged_ns * percent / 100)
            tally.add([Interval(name, at_ns, until_ns)])
            at_ns = until_ns
    tally.add([Interval("alone", 0, PHASES[-1].end_ns), Interval("red", PHASES[-1].end_ns, 2 * PHASES[-1].end_ns)])
    verdict = tally.judge(WORKLOADS)
    assert verdict.ok, verdict.failures()
    assert [result.phase for result in verdict.phases] == list(PHASES)


def test_an_interval_across_the_end_of_a_phase_counts_in_both() -> None:
    tally = Tally(PHASES[:1], recent_window_ns=NS_PER_S)
    tally.add([Interval("red", PHASES[0].end_ns - NS_PER_S, PHASES[0].end_ns + NS_PER_S)])
    (result,) = tally.judge(WORKLOADS).phases
    assert result.shares[0].executed_percent == 12.5


def test_what_is_shown_is_of_the_last_seconds_alone() -> None:
    tally = Tally(PHASES, recent_window_ns=100)
    tally.add([Interval("red", 0, 150), Interval("blue", 150, 180)])
    assert tally.recent_percents(200) == {"red": 50.0, "blue": 30.0}
    assert tally.recent_percents(270) == {"blue": 10.0}
    assert tally.recent_percents(300) == {}


def test_nothing_judged_is_not_ok() -> None:
    assert not Verdict(()).ok


def test_the_json_has_the_promised_shape() -> None:
    assert judged(4_000_800_000).as_json() == {
        "ok": True,
        "phases": [
            {
                "name": "all submit",
                "clients": [
                    {
                        "name": "red",
                        "request_percent": 50,
                        "expected_percent": 50.0,
                        "executed_percent": 50.01,
                    },
                    {
                        "name": "green",
                        "request_percent": 30,
                        "expected_percent": 30.0,
                        "executed_percent": 30.0,
                    },
                    {
                        "name": "blue",
                        "request_percent": 20,
                        "expected_percent": 20.0,
                        "executed_percent": 20.0,
                    },
                    {
                        "name": "alone",
                        "request_percent": 40,
                        "expected_percent": 100.0,
                        "executed_percent": 100.0,
                    },
                ],
            }
        ],
    }
