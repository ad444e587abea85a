"""Whatever is said of a device, Kubernetes takes what we make of it."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from edgeshare.contract.labels import label_names, label_value

# Kubernetes, apimachinery, pkg/util/validation: IsValidLabelValue; a name's part after the slash is so too, not empty.
VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


def test_a_name_is_spelled_with_hyphens() -> None:
    assert label_value("NVIDIA GeForce RTX 4090") == "NVIDIA-GeForce-RTX-4090"
    assert (
        label_value("NVIDIA Jetson Xavier NX Developer Kit (SD-card)")
        == "NVIDIA-Jetson-Xavier-NX-Developer-Kit-SD-card"
    )


def test_what_is_valid_stays() -> None:
    assert label_value("32.4.3") == "32.4.3"
    assert label_value("a_B.c-9") == "a_B.c-9"


def test_ends_are_letters_or_digits_after_the_cut_too() -> None:
    assert label_value("-_.a.") == "a"
    assert label_value(f"{'a' * 62}-b") == "a" * 62
    assert label_value("-" + "a" * 63) == "a" * 63


def test_of_nothing_valid_nothing_is_left() -> None:
    assert label_value(" ®\0 ") == ""
    assert label_names(["®", "a"]) == {"a": "a"}


def test_two_texts_have_two_names() -> None:
    assert label_names(["a+b", "a b", "a-b"]) == {"a-b": "a-b", "a b": "a-b-2", "a+b": "a-b-3"}


def test_a_cut_leaves_room_for_the_suffix_and_for_what_stands_around() -> None:
    names = label_names(["x" * 70, "x" * 71], "edge/gpu.", ".count")
    assert set(names.values()) == {f"edge/gpu.{'x' * 53}.count", f"edge/gpu.{'x' * 51}-2.count"}


@given(st.text() | st.text("a-._ ", max_size=80))
@example("a" * 63 + "." * 10)
def test_every_value_is_valid(text: str) -> None:
    value = label_value(text)
    assert VALUE.fullmatch(value)
    assert len(value) <= 63
    assert label_value(value) == value


@given(st.lists(st.text("aAb1-._ +é", max_size=70), max_size=12))
def test_every_name_is_valid_and_its_own(texts: list[str]) -> None:
    names = label_names(texts, "beta.devicetree.org/", ".count")
    for name in names.values():
        rest = name.removeprefix("beta.devicetree.org/")
        assert VALUE.fullmatch(rest)
        assert len(rest) <= 63
    assert len(set(names.values())) == len(names)
    assert names == label_names(reversed(texts), "beta.devicetree.org/", ".count")
    # Only what holds no letter and no digit has none.
    assert {text for text in texts if re.search(r"[A-Za-z0-9]", text)} <= names.keys()
