"""Tables in the documents are whole, and those of devices and shares have the columns that the commands print."""

import re

import pytest

from edgeshare.cli.status import cluster_view
from edgeshare.cli.status.node_view import DEVICE_COLUMNS, SHARE_COLUMNS
from tests.kit.deploy.blocks import BLOCK, PAGES, blocks

HEADS = {
    "owner": SHARE_COLUMNS,
    "gpu": DEVICE_COLUMNS,
    "node": cluster_view.DEVICE_COLUMNS,
    "waiting pod": tuple(str(column.header) for column in cluster_view.waiting_table([]).columns),
}
"""The first column of a table → all of them."""


def heads(text: str) -> list[tuple[str, ...]]:
    """The lines of a text that begin as a table's first."""
    rows = [tuple(re.split(r"  +", line)) for line in text.splitlines()]
    return [row for row in rows if row[0] in HEADS and len(row) > 1]


FOUND = [(str(block), row) for block in blocks() for row in heads(block.text)]


ROWS = re.compile(r"^ *\|.*(?:\n *\|.*)*", re.MULTILINE)
RULE = re.compile(r" *\|[-:| ]+\|")


def test_each_row_is_below_a_head() -> None:
    parts = [
        (page.name, part[0].splitlines()) for page in PAGES for part in ROWS.finditer(BLOCK.sub("", page.read_text()))
    ]
    assert len(parts) > 60
    assert [(page, rows[0]) for page, rows in parts if len(rows) < 3 or not RULE.fullmatch(rows[1])] == []


def test_some_of_each_are_found() -> None:
    assert {row[0] for _, row in FOUND} == HEADS.keys()


@pytest.mark.parametrize(("where", "row"), FOUND, ids=lambda value: value if isinstance(value, str) else value[0])
def test_each_has_the_columns_that_are_printed(where: str, row: tuple[str, ...]) -> None:
    assert row == HEADS[row[0]], where


def test_a_column_that_came_since_is_missed() -> None:
    old = "owner  gpu  request\ndefault/a/main  0  50 %\nnode\n"
    assert heads(old) == [("owner", "gpu", "request")] != [SHARE_COLUMNS]
