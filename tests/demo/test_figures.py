"""How the bench gets from what was executed to its figures."""

import json

import pytest

from bench.figures import (
    busy_percent,
    division_error_percent,
    gap_after_last_ns,
    hand_overs_ns,
    median,
    percentile,
    worst_share_error_percent,
)
from bench.host import cpu_model
from bench.report import Row, Target
from edgeshare.cli.demo_plan import Interval


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


def test_the_processor_is_named_on_arm_boards_too() -> None:
    assert cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n") == "Some CPU @ 2 GHz"
    assert cpu_model("processor\t: 0\nModel\t: Raspberry Pi 4\n") == "Raspberry Pi 4"
    assert cpu_model("processor\t: 0\n") != ""


def test_the_gap_after_a_clients_last_is_to_whatever_ran_next() -> None:
    ran = turns(("a", 0, 10), ("b", 12, 20), ("a", 21, 30), ("b", 37, 40), ("b", 40, 50))
    assert gap_after_last_ns(ran, "a") == 7
    assert gap_after_last_ns(ran, "b") is None
    assert gap_after_last_ns(ran, "c") is None


def test_lost_time_is_no_error_of_the_division() -> None:
    assert division_error_percent({"a": 60, "b": 20}, {"a": 75.0, "b": 25.0}) == 0.0
    assert division_error_percent({"a": 50, "b": 50}, {"a": 70.0, "b": 30.0}) == 20.0
    assert division_error_percent({"a": 30, "b": 30}, {"a": 25.0, "b": 25.0}) == 0.0
    with pytest.raises(ValueError, match="nothing was executed"):
        division_error_percent({}, {"a": 100.0})
