"""How many of many programs may fall short, and that those that ran in other tests are counted."""

from pathlib import Path

import pytest

from tests.kit.virtual.cases.tally import most_short, note


@pytest.mark.parametrize("count", [2000, 9400, 11_280])
def test_as_many_of_the_further_programs_pass_and_twice_as_many_do_not(count: int) -> None:
    expected = count * 23 / 720
    assert expected < most_short(23, 720, count) < 2 * expected


def test_of_few_programs_chance_may_say_more() -> None:
    parts = [most_short(23, 720, count) / count for count in (10, 94, 1000, 10_000)]
    assert parts == sorted(parts, reverse=True)


def test_of_as_many_as_are_known_two_and_a_half_deviations_more_may_fall_short() -> None:
    # 100 of 1000, twice: a deviation of one count is the root of 90, of their difference that of 180.
    assert most_short(100, 1000, 1000) == 133


def test_where_none_is_known_to_fall_short_none_may() -> None:
    assert most_short(0, 600, 9400) == 0


def test_the_last_of_several_tests_has_what_all_found(tmp_path: Path) -> None:
    files = [tmp_path / f"{index}.json" for index in range(3)]
    assert note(files, 2, {"600": "c0 used 1 %"}) is None
    assert note(files, 0, {}) is None
    assert note(files, 1, {"700": "c1 used 2 %"}) == [{}, {"700": "c1 used 2 %"}, {"600": "c0 used 1 %"}]
