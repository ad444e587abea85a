"""What the node is given later is made in the order in which it is needed."""

import os
import sys

import pytest

from tests.kit.onenode import ahead
from tests.kit.programs.binaries import KUBELETS, Module


@pytest.mark.parametrize("kubelets", [False, True])
def test_the_image_is_made_first_and_kubelets_in_the_time_that_nothing_else_wants(
    monkeypatch: pytest.MonkeyPatch, kubelets: bool
) -> None:
    made: list[object] = []

    def program(module: Module, name: str) -> None:
        made.append((module, name))

    monkeypatch.setattr(ahead, "project_image", lambda: made.append("image"))
    monkeypatch.setattr(ahead, "program", program)
    monkeypatch.setattr(os, "nice", made.append)
    monkeypatch.setattr(sys, "argv", ["ahead", *(["--kubelets"] if kubelets else [])])
    ahead.ahead()
    programs = [(module, "kubelet") for module in KUBELETS] if kubelets else []
    assert made == ["image", ahead.NICE, *programs]


@pytest.mark.parametrize(
    ("tests", "made"),
    [
        ([], None),
        ([("node",), ("archive",)], None),
        ([("node",), ("node", "edgeshare")], []),
        ([("node", "edgeshare"), ("node", "edgeshare", "kubelet")], ["--kubelets"]),
    ],
)
def test_what_is_made_is_what_tests_to_come_need(tests: list[tuple[str, ...]], made: list[str] | None) -> None:
    command = ahead.command(tests)
    assert (command[3:] if command else None) == made
