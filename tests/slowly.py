"""A plugin of pytest (``-p slowly``) that holds tests up between two of their own lines, as a busy machine does: a test
that then fails judges how soon it comes to look, and would fail one day with nothing wrong.

Each line of a file ``test_*.py`` is held up at most once in a test, by chance. The same seed, test and code are held up
at the same lines. Tests that measure (marked ``measures``) are not for this.
"""

import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

LEAST_S, MOST_S = 0.4, 1.5


class Holds:
    """What one test is held up by."""

    def __init__(self, seed: str, part: float) -> None:
        self.told: list[str] = []
        self._random = random.Random(seed)
        self._part = part
        self._seen: set[tuple[str, int]] = set()

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """As ``sys.settrace`` wants it: follows frames of tests alone."""
        return self._line if Path(frame.f_code.co_filename).name.startswith("test_") else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        place = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and place not in self._seen:
            self._seen.add(place)
            if self._random.random() < self._part:
                hold_s = self._random.uniform(LEAST_S, MOST_S)
                self.told.append(f"{place[0]}:{place[1]} {hold_s:.2f} s")
                time.sleep(hold_s)
        return self._line


def pytest_addoption(parser: pytest.Parser) -> None:
    """--slowly-seed, --slowly-part."""
    parser.addoption("--slowly-seed", default="1", help="which lines tests are held up at")
    parser.addoption("--slowly-part", type=float, default=0.08, help="of how many lines, as a part of one")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Holds up the test itself; its fixtures are ready by then."""
    holds = Holds(f"{item.config.getoption('slowly_seed')} {item.nodeid}", item.config.getoption("slowly_part"))
    threading.settrace(holds.trace)
    sys.settrace(holds.trace)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        if holds.told:
            item.add_report_section("call", "held up", "\n".join(holds.told))
