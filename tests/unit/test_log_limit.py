"""A line of the log that is said now and then, or once while what it tells of lasts."""

import logging

import pytest

from edgeshare.log_limit import SAID_EVERY_NS, LogLimit
from edgeshare.log_trouble import REASONS_AT_ONCE, Trouble


def test_the_first_line_is_said_as_it_is() -> None:
    assert LogLimit().ending(5) == ""


def test_what_comes_too_soon_goes_unsaid_and_the_next_line_tells_how_often() -> None:
    limit = LogLimit()
    limit.ending(0)
    assert [limit.ending(SAID_EVERY_NS * k // 4) for k in range(1, 4)] == [None, None, None]
    assert limit.ending(SAID_EVERY_NS) == " (3 more since the last such line)"


def test_each_count_is_told_once_and_each_time_begins_with_the_line_that_was_said() -> None:
    limit = LogLimit()
    said = [limit.ending(now_ns) for now_ns in (0, 1, SAID_EVERY_NS, 2 * SAID_EVERY_NS - 1, 2 * SAID_EVERY_NS)]
    assert said == ["", None, " (1 more since the last such line)", None, " (1 more since the last such line)"]
    assert limit.ending(9 * SAID_EVERY_NS) == ""


def test_so_many_at_once_and_then_one_at_a_time() -> None:
    limit = LogLimit(burst=3)
    assert [limit.ending(7) for _ in range(4)] == ["", "", "", None]
    assert limit.ending(7 + SAID_EVERY_NS) == " (1 more since the last such line)"
    assert limit.ending(7 + SAID_EVERY_NS) is None
    assert [limit.ending(100 * SAID_EVERY_NS) for _ in range(4)] == [" (1 more since the last such line)", "", "", None]


def test_what_goes_unsaid_in_a_flood_keeps_nothing_from_being_said_after_it() -> None:
    limit = LogLimit(burst=2)
    assert sum(limit.ending(0) is not None for _ in range(1000)) == 2
    assert limit.ending(SAID_EVERY_NS) == " (998 more since the last such line)"


class Failing:
    """A trouble, and what the log has of it."""

    def __init__(self, caplog: pytest.LogCaptureFixture, over: str = "") -> None:
        caplog.set_level(logging.INFO)
        self.now_ns = 0
        self.trouble = Trouble(logging.getLogger("failing"), "it is not written", over, lambda: self.now_ns)
        self._caplog = caplog

    def said(self) -> list[str]:
        """Since this was last asked."""
        said = self._caplog.messages
        self._caplog.clear()
        return said


def test_a_reason_is_said_once_and_its_end_with_how_often_it_was(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing(caplog)
    for _ in range(5):
        failing.trouble.fails(OSError("no room"))
    assert (failing.said(), failing.trouble.count) == (["it is not written: no room"], 5)
    failing.trouble.fails("no disk")
    failing.trouble.over()
    failing.trouble.over()
    assert failing.said() == ["it is not written: no disk", "it is not written: over, after 6 times"]
    assert failing.trouble.count == 0
    failing.trouble.fails("no disk")
    assert failing.said() == ["it is not written: no disk"]


def test_an_end_may_have_words_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing(caplog, "it is written again")
    failing.trouble.over()
    failing.trouble.fails("no room")
    failing.trouble.over()
    assert failing.said() == ["it is not written: no room", "it is written again"]


def test_reasons_that_take_turns_and_ends_in_between_are_said_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing(caplog)
    for number in range(1000):
        failing.trouble.fails(f"reason {number}")
    assert len(failing.said()) == REASONS_AT_ONCE
    failing.now_ns = SAID_EVERY_NS
    failing.trouble.fails("another")
    assert failing.said() == [f"it is not written: another ({1000 - REASONS_AT_ONCE} more since the last such line)"]
    for _ in range(1000):
        failing.trouble.over()
        failing.trouble.fails("another")
    assert failing.said() == [f"it is not written: over, after {1001} times"]
