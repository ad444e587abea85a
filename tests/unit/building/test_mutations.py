"""The changes by which it is tried what the tests see can be made in this tree, and one that cannot is refused."""

import re
from dataclasses import replace
from pathlib import Path

import mutations
import pytest

ROOT = Path(__file__).parents[3]

REPORT = """<testsuites><testsuite name="pytest">
<testcase classname="tests.unit.test_quantity" name="test_that_holds" />
<testcase classname="tests.unit.test_quantity" name="test_shares[50]">
  <failure message="assert 52 == 50&#10; +  more">trace</failure>
</testcase>
<testcase classname="tests.unit.test_quantity" name="test_behind_it"><error message="broken">trace</error></testcase>
</testsuite></testsuites>
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path in {mutation.file for mutation in mutations.MUTATIONS}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    return tmp_path


@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_change_can_be_made_in_the_tree_as_it_is(tree: Path, mutation: mutations.Mutation) -> None:
    before = (tree / mutation.file).read_text()
    mutations.apply(tree, mutation)
    assert (tree / mutation.file).read_text() != before
    for test in mutation.tests:
        assert (ROOT / test).exists()


def test_the_names_are_each_ones_own() -> None:
    names = [mutation.name for mutation in mutations.MUTATIONS]
    assert len({*names}) == len(names)
    assert mutations.chosen(names[1:3]) == mutations.MUTATIONS[1:3]
    with pytest.raises(SystemExit, match="there is no mutation 'none': choose of "):
        mutations.chosen(["none"])


@pytest.mark.parametrize(("text", "times"), [("no line of any file", 0), ("}\n", "[0-9]+")])
def test_a_change_whose_place_is_gone_or_is_not_the_only_one_is_an_error(tree: Path, text: str, times: object) -> None:
    mutation = replace(mutations.chosen(["early"])[0], text=text)
    before = (tree / mutation.file).read_text()
    with pytest.raises(SystemExit, match=f"^{re.escape(mutation.file)}: .* early replaces is there {times} times"):
        mutations.apply(tree, mutation)
    assert (tree / mutation.file).read_text() == before


def test_the_first_test_that_failed_is_named_as_pytest_takes_it(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert mutations.first_red(report) == ("tests/unit/test_quantity.py::test_shares[50]", "assert 52 == 50")
    report.write_text(REPORT.replace("failure", "skipped").replace("error", "skipped"))
    assert mutations.first_red(report) == (None, "")


def test_the_documents_say_of_each_what_saw_it() -> None:
    told = (ROOT / "docs/develop/testing.md").read_text()
    assert [each.name for each in mutations.MUTATIONS if f"| {each.what} | `tests/" not in told] == []
