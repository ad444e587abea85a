"""A plugin of pytest (``-p tests.kit.plugins.slowly``) that holds tests up between two of their own lines, as a busy
machine does: a test that then fails judges how soon it comes to look, and would fail one day with nothing wrong.

Each line of a file ``test_*.py`` is held up at most once in a test, by chance. The same seed, test and code are held up
at the same lines. With ``--slowly-daemons`` the daemons that tests fork (`processes/forked.py`) are held up instead:
a test that then fails takes for granted how far one has come. Tests that measure (marked ``measures``) are not for
this.
"""

from collections.abc import Iterator

import pytest

from tests.kit.processes import forked
from tests.kit.processes.holds import Chance, Holds, of_tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """--slowly-seed, --slowly-part, --slowly-daemons."""
    parser.addoption("--slowly-seed", default="1", help="which lines are held up")
    parser.addoption("--slowly-part", type=float, default=0.08, help="how many lines, as a part of one")
    parser.addoption("--slowly-daemons", action="store_true", help="lines of the daemons, not of the tests")


def _chance(item: pytest.Item, least_s: float, most_s: float) -> Chance:
    seed, part = (item.config.getoption(f"slowly_{name}") for name in ("seed", "part"))
    return Chance(f"{seed} {item.nodeid}", part, least_s, most_s)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fixtures start daemons, too."""
    if item.config.getoption("slowly_daemons"):
        forked.hold_up(_chance(item, 0.02, 0.15))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Holds up the test itself; its fixtures are ready by then."""
    holds = Holds(_chance(item, 0.4, 1.5), of_tests)
    if not item.config.getoption("slowly_daemons"):
        holds.begin()
    try:
        return (yield)
    finally:
        holds.end()
        if holds.told:
            item.add_report_section("call", "held up", "\n".join(holds.told))
