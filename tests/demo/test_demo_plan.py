"""What the demo expects by the rule, and how it judges."""

import pytest

from edgeshare.cli.demo_plan import (
    SETTLE_NS,
    WORKLOADS,
    Phase,
    Sample,
    Verdict,
    Workload,
    expected_percents,
    judge_phase,
    make_phases,
    rule_percents,
)
from edgeshare.errors import InvalidRequest, Unavailable
from edgeshare.units import NS_PER_S

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
    executed_ns = {"red": red_ns, "green": 2_400_000_000, "blue": 1_600_000_000, "alone": 8_000_000_000}
    if phase.paused:
        executed_ns |= {"green": 4_800_000_000, "blue": 3_200_000_000}
    samples = [Sample(phase.judged_from_ns, {}), Sample(phase.end_ns, executed_ns)]
    return Verdict((judge_phase(WORKLOADS, phase, samples),))


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


def test_only_the_judged_part_of_a_phase_counts() -> None:
    phase = PHASES[1]
    totals = {"red": 0, "green": 4_800_000_000, "blue": 3_200_000_000, "alone": 8_000_000_000}
    wild = dict.fromkeys(totals, 10000000000)
    samples = [
        Sample(phase.begin_ns, dict.fromkeys(totals, -10000000000)),
        Sample(phase.judged_from_ns, {}),
        Sample(phase.end_ns, totals),
        Sample(phase.end_ns + 1, wild),
    ]
    assert judge_phase(WORKLOADS, phase, samples).ok


def test_a_phase_that_was_hardly_looked_at_is_not_judged() -> None:
    with pytest.raises(Unavailable, match="too seldom to judge"):
        judge_phase(WORKLOADS, PHASES[0], [Sample(PHASES[0].judged_from_ns, {})])
    late_ns = PHASES[0].end_ns - NS_PER_S
    with pytest.raises(Unavailable, match="too seldom to judge"):
        judge_phase(WORKLOADS, PHASES[0], [Sample(late_ns, {}), Sample(PHASES[0].end_ns, {})])


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
