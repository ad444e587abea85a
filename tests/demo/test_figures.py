"""How the bench gets from what was executed to its figures."""

import json

import pytest

from bench.figures import (
    busy_percent,
    gap_after_last_ns,
    hand_overs_ns,
    held_turns,
    longest_gap_ns,
    median,
    next_begin_ns,
    percentile,
    running_at,
    worst_share_error_percent,
)
from bench.host import cpu_model
from bench.node.drains import drained_ms
from bench.node.shares import CASES, Case
from bench.report import Row, Target, as_markdown
from simgpu.stage.executed import Interval


def turns(*parts: tuple[str, int, int]) -> list[Interval]:
    return [Interval(*part) for part in parts]


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = list(range(1, 101))
    assert (percentile(values, 50), percentile(values, 99), percentile(values, 100)) == (50, 99, 100)
    assert median([3.0, 1.0, 2.0]) == 2.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_busy_is_what_any_client_ran() -> None:
    assert busy_percent(turns(("a", 0, 10), ("b", 10, 30), ("a", 30, 40)), 0, 50) == 80.0


def test_a_hand_over_is_the_gap_between_two_clients_and_not_one_within_a_client() -> None:
    ran = turns(("a", 0, 10), ("a", 12, 20), ("b", 25, 30), ("b", 31, 40), ("a", 47, 50))
    assert hand_overs_ns(ran, 0, 100) == [5, 7]
    assert hand_overs_ns(ran, 12, 40) == [5]


def test_the_worst_window_is_found_wherever_it_lies() -> None:
    even = turns(*((("a", "b")[i % 2], i * 10, i * 10 + 10) for i in range(40)))
    half = {"a": 50.0, "b": 50.0}
    assert worst_share_error_percent(even, half, 0, 400, window_ns=100, step_ns=20) == 0.0
    # From 200 to 260 only a runs: a window of 100 that holds it gives a 80 %.
    uneven = [i._replace(name="a") if 200 <= i.begin_ns < 260 else i for i in even]
    assert worst_share_error_percent(uneven, half, 0, 400, window_ns=100, step_ns=20) == 30.0


def test_a_client_that_ran_nothing_or_that_nobody_expected_is_an_error_of_its_share() -> None:
    ran = turns(("a", 0, 100))
    assert worst_share_error_percent(ran, {"a": 100.0, "b": 25.0}, 0, 100, window_ns=100, step_ns=10) == 25.0
    assert worst_share_error_percent(ran, {}, 0, 100, window_ns=100, step_ns=10) == 100.0


def test_an_interval_across_windows_counts_in_each_with_its_part() -> None:
    ran = turns(("a", -50, 150))
    assert worst_share_error_percent(ran, {"a": 50.0}, 0, 200, window_ns=100, step_ns=50) == 50.0


def test_a_run_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter than one window"):
        worst_share_error_percent([], {}, 0, 50, window_ns=100, step_ns=10)


def test_a_missed_target_is_told_and_a_control_has_to_miss() -> None:
    target = Target(1.0)
    assert Row("f", "points", [0.5], target=target).met is True
    assert Row("f", "points", [1.5], target=target).met is False
    assert Row("f", "points", [20.0], target=target, must_miss=True).met is True
    assert Row("f", "points", [0.5], target=target, must_miss=True).met is False
    assert Row("f", "%", [98.0], target=Target(97, at_least=True)).met is True
    assert Row("f", "%", [96.0], target=Target(97, at_least=True)).met is False
    assert Row("f", "us", [96.0]).met is None


def test_a_row_tells_its_runs_what_was_with_and_without_and_its_target() -> None:
    row = Row(
        "added time per launch",
        "ns",
        [3.0, 1.0, 2.0],
        {"scheduling": "fifo"},
        with_edgeshare=[13.0, 11.0, 12.0],
        without_edgeshare=[10.0, 10.0, 10.0],
        target=Target(25),
    )
    assert json.loads(json.dumps(row.as_json())) == {
        "figure": "added time per launch",
        "settings": {"scheduling": "fifo"},
        "unit": "ns",
        "value": 2.0,
        "runs": [3.0, 1.0, 2.0],
        "with": [13.0, 11.0, 12.0],
        "without": [10.0, 10.0, 10.0],
        "target": {"at_most": 25},
        "met": True,
    }


def test_the_readmes_table_shows_the_worst_of_each_figure_and_how_many_met_it() -> None:
    rows = [
        Row("share error", "points", [0.2], {"shares": "50/50"}, target=Target(0.5)),
        Row("share error", "points", [0.7], {"shares": "70/30"}, target=Target(0.5)),
        Row("share error", "points", [20.0], {"shares": "70/30"}, target=Target(0.5), must_miss=True),
        Row("kept", "%", [99.5], {"kernels": "1 ms"}, target=Target(99, at_least=True)),
        Row("kept", "%", [98.5], {"kernels": "10 ms"}, target=Target(99, at_least=True)),
        Row("a floor", "us", [7.0]),
    ]
    assert as_markdown(rows).splitlines()[2:] == [
        "| share error | ≤ 0.5 points | 0.7 (shares 70/30) | 0.2 | 1 of 2 |",
        "| share error, no hook (control) | not ≤ 0.5 points | 20 (shares 70/30) |  | yes |",
        "| kept | ≥ 99 % | 98.5 (kernels 10 ms) | 99.5 | 1 of 2 |",
    ]


def test_the_processor_is_named_on_arm_boards_too() -> None:
    assert cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n") == "Some CPU @ 2 GHz"
    assert cpu_model("processor\t: 0\nModel\t: Raspberry Pi 4\n") == "Raspberry Pi 4"
    assert cpu_model("processor\t: 0\n") != ""


def test_the_gap_after_a_clients_last_is_to_whatever_ran_next() -> None:
    ran = turns(("a", 0, 10), ("b", 12, 20), ("a", 21, 30), ("b", 37, 40), ("b", 40, 50))
    assert gap_after_last_ns(ran, "a") == 7
    assert gap_after_last_ns(ran, "b") is None
    assert gap_after_last_ns(ran, "c") is None


def test_time_that_nobody_used_is_an_error_of_the_window_and_none_of_what_was_executed() -> None:
    ran = turns(*((("a", "a", "a", "b")[i % 4], i * 10, i * 10 + 8) for i in range(40)))
    expected = {"a": 75.0, "b": 25.0}
    assert worst_share_error_percent(ran, expected, 0, 400, window_ns=200, step_ns=40, of_executed=True) == 0.0
    assert worst_share_error_percent(ran, expected, 0, 400, window_ns=200, step_ns=40) == pytest.approx(15.0)
    # One that got nothing lacks all of its share, also where nobody got anything.
    assert worst_share_error_percent([], expected, 0, 400, window_ns=200, step_ns=40, of_executed=True) == 75.0


def test_the_longest_wait_is_found_at_the_begin_between_and_at_the_end() -> None:
    ran = turns(("a", 0, 10), ("b", 10, 40), ("a", 40, 50), ("b", 50, 90), ("a", 90, 95))
    assert longest_gap_ns(ran, "a", 0, 100) == 40
    assert longest_gap_ns(ran, "b", 0, 100) == 10
    assert longest_gap_ns(ran, "a", 0, 200) == 105
    assert longest_gap_ns(ran, "a", 45, 85) == 35
    assert longest_gap_ns(ran, "c", 0, 100) == 100


def test_a_turn_holds_its_gaps_and_ends_where_another_runs() -> None:
    ran = turns(("a", 0, 10), ("a", 12, 20), ("b", 21, 30), ("b", 50, 60), ("a", 61, 70))
    assert held_turns(ran) == turns(("a", 0, 20), ("b", 21, 60), ("a", 61, 70))


def test_who_runs_at_a_time_is_the_last_that_began() -> None:
    ran = turns(("a", 0, 10), ("b", 20, 30))
    assert [running_at(ran, time_ns) for time_ns in (-1, 5, 15, 20, 99)] == [None, "a", "a", "b", "b"]
    assert next_begin_ns(ran, "b", 5) == 20
    assert next_begin_ns(ran, "a", 5) is None


def test_a_drain_lasts_to_the_end_of_what_began_before_the_release() -> None:
    ms = 1_000_000
    ran = turns(("a", 0, 3 * ms), ("a", 3 * ms, 7 * ms), ("a", 20 * ms, 22 * ms))
    # Revoked at 5 and released at 8; revoked when nothing ran any more.
    assert drained_ms([(5 * ms, 8 * ms), (23 * ms, 24 * ms)], ran) == [2.0, 0.0]


def test_a_case_says_what_it_is_and_every_uneven_one_has_a_control() -> None:
    names = [case.name for case in CASES]
    assert {"50/50", "70/30", "60/30/10", "4 x 25", "25/25, limits 25/25", "36 + 64 x 1"} <= set(names)
    assert all(case.even == (case.name in ("50/50", "4 x 25")) for case in CASES)
    one_length = Case((70, 30), ("1000",), "")
    assert [(each.kernels, each.percent) for each in one_length.clients(hooked=True)] == [("1000", 70), ("1000", 30)]
    assert [each.percent for each in one_length.clients(hooked=False)] == [None, None]
