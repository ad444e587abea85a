"""A line of the log that is said now and then."""

from edgeshare.log_limit import SAID_EVERY_NS, LogLimit


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
