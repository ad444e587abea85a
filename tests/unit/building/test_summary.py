"""The line for a group of tests says what became of each of them."""

import subprocess
import sys
from pathlib import Path

import pytest
from summary import line

TESTS = """
import pytest

def test_it_holds(): pass

def test_it_does_not(): assert False

@pytest.fixture
def broken(): raise OSError

def test_what_it_needs_is_not_there(broken): pass

@pytest.mark.parametrize("figure", [1, 2, 3])
def test_a_target(figure): pytest.xfail("1.2 of 1")

@pytest.mark.skip(reason="nothing can be mounted here")
def test_not_here(): pass

def test_nor_this(): pytest.importorskip("no_such_package")
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("group")
    (folder / "test_group.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=report.xml", "--rootdir=."]
    done = subprocess.run([*command, "test_group.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return folder / "report.xml"


def test_a_missed_target_is_none_that_was_not_run(report: Path) -> None:
    told = line("test-unit", report).split()
    assert told[:-2] == ["test-unit", "1", "passed", "2", "failed", "3", "missed", "targets", "2", "skipped"]


def test_a_group_without_a_report_is_told() -> None:
    assert line("test-unit", Path("no such report")).startswith("test-unit      has no report")
