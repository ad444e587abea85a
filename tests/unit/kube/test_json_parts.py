"""Of JSON the parts that are looked at; and what cannot be read, a line of a watch too, is said to be so."""

import json
from typing import Any, TypedDict

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.json_parts import reader_of, write
from edgeshare.kube.messages import parse_change

NESTED = b'{"type": "ADDED", "object": {"other": ' + b"[" * 50_000 + b"]" * 50_000 + b"}}"


class Shape(TypedDict, total=False):
    name: Any
    inner: "Shape | None"


def test_what_nobody_names_is_passed_over() -> None:
    text = b'{"name": [1, {"a": null}], "other": {"name": 1}, "inner": {"inner": null, "other": 1}}'
    assert reader_of(Shape)(text) == {"name": [1, {"a": None}], "inner": {"inner": None}}


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'{"inner": 5}', b"{}{}", b"\xff", NESTED])
def test_what_is_of_another_shape_cannot_be_read(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        reader_of(Shape)(text)


def test_a_line_that_is_nested_without_end_ends_its_watch() -> None:
    with pytest.raises(Unavailable, match="a watch of /pods broke off"):
        parse_change("/pods", NESTED)


@pytest.mark.parametrize("thing", [{}, {"a": ["ä", None, True, -1, 0.5, 2**70]}, {"a": "\ud800"}, "\x00\r\n"])
def test_what_is_written_is_read_as_it_was(thing: object) -> None:
    written = write(thing)
    assert json.loads(written) == thing
    assert not written.split()[1:]
