"""What is kept of how much was used: steps of time that is passed in, and no more than there is room for."""

import pytest

from edgeshare.shown.history import UNKNOWN, History

STEP_NS = 10
ONE, TWO = ("GPU-0", "a"), ("GPU-0", "b")


@pytest.fixture
def history() -> History:
    """Of four steps, for two lines."""
    return History(STEP_NS, steps=4, lines_max=2)


def test_a_step_that_is_over_is_the_mean_of_what_was_seen_in_it(history: History) -> None:
    for percent, now_ns in ((10, 100), (20, 104), (33, 109)):
        history.take({ONE: percent}, now_ns)
        assert history.lines() == {"GPU-0": {"a": []}}
    history.advance(110)
    assert history.lines() == {"GPU-0": {"a": [21]}}


def test_its_version_rises_with_each_step_and_with_nothing_else(history: History) -> None:
    versions = []
    for now_ns in (100, 109, 110, 119, 120):
        history.take({ONE: 1}, now_ns)
        versions.append(history.version)
    assert versions == [0, 0, 1, 1, 2]


def test_a_step_in_which_nothing_was_seen_is_a_gap(history: History) -> None:
    history.take({ONE: 50}, 100)
    history.take({ONE: 60}, 130)
    history.advance(140)
    assert history.lines() == {"GPU-0": {"a": [50, None, None, 60]}}


def test_only_so_many_steps_are_kept(history: History) -> None:
    for step in range(10):
        history.take({ONE: step}, step * STEP_NS)
    assert history.lines() == {"GPU-0": {"a": [5, 6, 7, 8]}}


def test_who_is_gone_for_longer_than_it_reaches_is_forgotten(history: History) -> None:
    history.take({ONE: 1, TWO: 2}, 0)
    for step in range(1, 5):
        history.take({TWO: 2}, step * STEP_NS)
    assert set(history.lines()["GPU-0"]) == {"a", "b"}
    history.take({TWO: 2}, 5 * STEP_NS)
    assert set(history.lines()["GPU-0"]) == {"b"}


def test_time_that_jumps_far_costs_no_more_than_its_steps(history: History) -> None:
    history.take({ONE: 1}, 0)
    history.advance(10**18)
    assert history.lines() == {}


def test_there_is_no_room_for_more_lines_than_agreed(history: History) -> None:
    history.take({ONE: 1, TWO: 2, ("GPU-1", "c"): 3}, 0)
    assert history.lines() == {"GPU-0": {"a": [], "b": []}}


@pytest.mark.parametrize(("told", "kept"), [(-5.0, 0), (0.4, 0), (99.6, 100), (100 * UNKNOWN, 100)])
def test_what_is_no_percent_is_taken_as_the_nearest(history: History, told: float, kept: int) -> None:
    history.take({ONE: told}, 0)
    history.advance(STEP_NS)
    assert history.lines() == {"GPU-0": {"a": [kept]}}


def test_time_that_goes_back_ends_no_step(history: History) -> None:
    history.take({ONE: 1}, 100)
    history.take({ONE: 3}, 95)
    history.advance(110)
    assert history.lines() == {"GPU-0": {"a": [2]}}
