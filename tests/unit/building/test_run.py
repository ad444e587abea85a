"""What a run of the tests does for all of them (tests/conftest.py)."""

import gc


def test_what_was_found_is_not_looked_through_for_garbage_and_what_tests_make_is() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
