"""A process that simulates cases for each worker of a run of the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.virtual.cases.tally import SHORT
from tests.kit.virtual.world import World, build_libraries, reason_not_to


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips, with the reason, what this machine cannot simulate."""
    reason = reason_not_to()
    if reason is not None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells of each random program that falls short where only their number is judged, also where it is right."""
    for report in (each for reports in terminalreporter.stats.values() for each in reports):
        if getattr(report, "when", None) == "call":
            for name, line in report.user_properties:
                if name == SHORT:
                    terminalreporter.write_line(f"{SHORT}: {line}")


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The virtual machine and the programs, built."""
    return build_libraries()


@pytest.fixture(scope="session")
def world(libraries: Path) -> Iterator[World]:
    world = World(libraries)
    yield world
    world.close()
