"""What the documents refer to is there: tests that are named for what they hold, files, and headings."""

import ast
import re
from pathlib import Path

import pytest

from sharemgr.node.config import Config

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMED = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
LINK = re.compile(r"\]\(([^()\s]+)\)")
PATH = re.compile(r"/|\.(py|h|c|S|def|md|html|json|yaml)$")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def names_in(path: Path) -> set[str]:
    """What a file of tests has at its top: functions, and what is assigned there (tests of a state machine)."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def anchors(path: Path) -> set[str]:
    """What a link can name within a page, as GitHub makes it of its headings."""
    headings = HEADING.findall(CODE.sub("", path.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("page", "least"), [("guarantees/security", 50), ("develop/testing", 25)])
def test_tests_that_something_is_said_to_rest_on_are_there(page: str, least: int) -> None:
    named = NAMED.findall((ROOT / f"docs/{page}.md").read_text())
    assert len(named) > least
    missing = [
        f"{path}::{name}" for path, name in named if not (ROOT / path).exists() or name not in names_in(ROOT / path)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in LINK.findall(CODE.sub("", page.read_text())):
        name, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def lost(row: str) -> list[str]:
    """Which paths a row of a table names that are not there, and which names that none of its files has. A path begins
    at the root, or in a folder on the way to what the row names before."""
    folders, text, names, missing = [ROOT], "", [], []
    for token in re.findall(r"`([^`]+)`", row):
        if not PATH.search(token):
            names.append(token.rpartition(".")[2])
            continue
        found = [path for folder in folders for path in folder.glob(token.rstrip("/"))]
        if not found:
            missing.append(token)
        for path in found:
            folders += [
                folder for folder in (path, *path.parents) if folder.is_relative_to(ROOT) and folder not in folders
            ]
            text += path.read_text() if path.is_file() else ""
    return missing + [name for name in names if text and not re.search(rf"\b{re.escape(name)}\b", text)]


@pytest.mark.parametrize(("page", "least"), [("docs/develop/architecture.md", 90), ("CONTRIBUTING.md", 20)])
def test_what_the_tables_of_the_tree_name_is_there(page: str, least: int) -> None:
    rows = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("| ")]
    assert len(rows) > least
    assert {row: missing for row in rows if (missing := lost(row))} == {}


def test_what_strangers_looked_for_is_found_in_four_steps() -> None:
    table = (ROOT / "docs/develop/architecture.md").read_text().partition("## Looked for and found\n")[2]
    steps = re.findall(r"^\| .+\| (\d+) \|$", table, re.MULTILINE)
    assert len(steps) > 50
    assert max(map(int, steps)) <= 4


def test_files_of_tests_that_hold_something_are_there() -> None:
    named = set(re.findall(r"tests/[\w/]+\.py", (ROOT / "docs/develop/testing.md").read_text()))
    assert len(named) > 60
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_page_of_the_manager_has_each_of_its_settings_with_the_default() -> None:
    page = (ROOT / "docs/parts/sharemgr.md").read_text()
    table = page.partition("## Configuration\n")[2].partition("\n## ")[0]
    rows = [
        [re.findall(r"[^`, ]+", cell) for cell in row.split("|")[1:3]] for row in re.findall(r"^\| `.+", table, re.M)
    ]
    assert sorted(key for keys, _ in rows for key in keys) == sorted(Config.model_fields)
    said = {key: default for keys, defaults in rows for key, default in zip(keys, defaults, strict=False)}
    given = {key: field.default for key, field in Config.model_fields.items()}
    # What is none, or has parts of its own, is told in words.
    plain = {key: str(value) for key, value in given.items() if value and isinstance(value, int | float | str | Path)}
    assert {key: said[key] for key in plain} == plain


def test_every_folder_has_its_place() -> None:
    rows = [line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("| `")]
    named = {
        path.rstrip("/").rpartition("/")[2] for row in rows for path in re.findall(r"`([^`]+)`", row.split("|")[1])
    }
    parts = ("edgeshare", "sharemgr", "tests")
    folders = {path.name for part in parts for path in (ROOT / part).iterdir() if path.is_dir()}
    assert folders - named - {"__pycache__"} == set()
