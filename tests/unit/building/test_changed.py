"""What `make test-changed` knows of the tree is so: what it names is there, and what tests start it knows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import changed
import pytest

from edgeshare.cli import COMMANDS

ROOT = Path(__file__).parents[3]
BEFORE = {"-m", "edgeshare", "edgeshare.cli", "kubectl"}
"""What may stand before a command where it is started."""
BEHIND = {
    ("deviceplugin", ""): "deviceplugin",
    ("labeller", ""): "labeller",
    ("sharemgr", "cluster"): "sharemgr.cluster",
    ("sharemgr", "node"): "sharemgr.node",
    ("simgpu", ""): "simgpu",
}
"""Command, and its own one → the part that it starts."""


@pytest.fixture(scope="module")
def project() -> changed.Project:
    return changed.Project()


@pytest.fixture(scope="module")
def tests(project: changed.Project) -> changed.Tests:
    return changed.Tests(project)


def words_in(text: str) -> Iterator[list[str]]:
    """What stands in each list, and in each call; empty where it is no text."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.List | ast.Tuple | ast.Call):
            continue
        there = node.args if isinstance(node, ast.Call) else node.elts
        within = [
            each.value.elts if isinstance(each, ast.Starred) and isinstance(each.value, ast.Tuple) else [each]
            for each in there
        ]
        texts = [
            each.values[0] if isinstance(each, ast.JoinedStr) and each.values else each
            for some in within
            for each in some
        ]
        yield [each.value if isinstance(each, ast.Constant) and isinstance(each.value, str) else "" for each in texts]


def started_in(path: Path) -> set[str]:
    """What of the project a file starts: where a command is named behind `edgeshare.cli`, or with an option."""
    found = set[str]()
    text = path.read_text()
    # To read it takes a hundred times as long as to find that it names none.
    if not any(f'"{command}"' in text for command in COMMANDS):
        return found
    for words in words_in(text):
        for place, word in enumerate(words):
            before, after = {each for each in words[:place] if each}, words[place + 1 :]
            is_first = word in COMMANDS and before <= BEFORE
            if is_first and (changed.COMMAND in before or any(re.match("--[a-z]", each) for each in after)):
                found.add(f"{changed.COMMAND}.{word}")
                found |= {part for (name, own), part in BEHIND.items() if name == word and own in ("", *after[:1])}
    return found


def covers(root: str, part: str) -> bool:
    """Whether a part is run where this root is: the command line by itself is none of its commands."""
    return part == root or (root != changed.COMMAND and part.startswith(f"{root}."))


def test_folders_files_and_modules_that_it_names_are_there(project: changed.Project) -> None:
    named = {*changed.RUNS, *changed.FILES, *(each for asked in changed.FILES.values() for each in asked)}
    assert [name for name in sorted(named) if not list(ROOT.glob(f"{name.rstrip('/')}*"))] == []
    assert {root for roots in changed.RUNS.values() for root in roots} - project.modules == set()


def test_what_a_test_starts_it_is_run_for(tests: changed.Tests) -> None:
    missing: dict[str, set[str]] = {}
    starting = 0
    known: dict[Path, set[str]] = {}
    for file in tests.files:
        known.update({path: started_in(path) for path in tests.needs(file) if path not in known})
        started = set[str]().union(*(known[path] for path in tests.needs(file)))
        starting += bool(started)
        lacking = {part for part in started if not any(covers(root, part) for root in changed.runs(file))}
        if lacking:
            missing[changed.name(file)] = lacking
    assert starting > 50
    assert missing == {}


def test_each_folder_of_tests_is_in_a_group_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text()
    recipes = re.findall(r"^test-(?:unit|virtual|parts|shares|cluster): .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    (sharing,) = re.findall(r"^SHARING = (.*)$", makefile, re.MULTILINE)
    run = {
        path.partition("/")[2]
        for recipe in recipes
        for path in re.findall(r"tests/\w+", recipe.replace("$(SHARING)", sharing))
    }
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders - run == {"gpu"}


def test_files_that_are_run_in_another_way_are_there(pytestconfig: pytest.Config) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(ROOT / "tests/conftest.py"))
    assert conftest is not None
    named = {
        *conftest.MEASURING,
        *conftest.IN_STRETCHES,
        conftest.WITHOUT_NODE,
        *(f"tests/{each}" for each in conftest.ON_API_SERVER),
    }
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
