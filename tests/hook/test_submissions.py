"""Each function that submits waits for a grant, by its own name; each that only orders goes through a closed gate; and
each answers what it answers without the hook."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_hook import wire
from tests.kit.hook.manager import ScriptedManager
from tests.kit.hook.stage import ROOT, SUCCESS, Client, Stage, compile_program

NOT_READY = 600

LISTED = (ROOT / "cuda_hook/src/driver/symbols.def").read_text()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compile_program(tmp_path / "submissions", "submissions.c")


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    started: list[Client] = []
    yield started
    for client in started:
        client.kill()


def begin(program: Path, environment: dict[str, str], clients: list[Client]) -> dict[str, list[str]]:
    """Starts the program; the names that it knows, by what the functions do."""
    client = Client([str(program)], environment)
    clients.append(client)
    known: dict[str, list[str]] = {"submits": [], "orders": [], "absent": []}
    while (line := client.line()) != "ready":
        kind, name = line.split()
        known[kind].append(name)
    return known


def listed() -> set[str]:
    """All that symbols.def says to submit, in both forms where there are two."""
    plain = set(re.findall(r"^ES_(?:ONE|PTSZ|PTDS)\(\w+, (\w+),", LISTED, re.MULTILINE))
    ptsz = {f"{name}_ptsz" for name in re.findall(r"^ES_PTSZ\(\w+, (\w+),", LISTED, re.MULTILINE)}
    ptds = {f"{name}_ptds" for name in re.findall(r"^ES_PTDS\(\w+, (\w+),", LISTED, re.MULTILINE)}
    return plain | ptsz | ptds | {"cuGraphInstantiateWithParams", "cuGraphInstantiateWithParams_ptsz"}


@pytest.mark.misuses("release_device: unknown address")
def test_each_submission_waits_for_a_grant_and_each_order_passes(
    program: Path, stage: Stage, manager: ScriptedManager, clients: list[Client]
) -> None:
    """The gate is closed anew before each: one that passed it would answer, and nobody would have asked for a grant."""
    environment = stage.environment()
    bare_known = begin(program, {**environment, "LD_PRELOAD": ""}, clients)
    known = begin(program, environment, clients)
    assert known == bare_known
    assert {*known["submits"], *known["absent"]} >= listed() >= set(known["submits"])
    bare, hooked = clients
    succeeded = 0
    for name in known["orders"]:
        expected = bare.do(f"orders {name}")
        hooked.tell(f"orders {name}")
        [answer] = hooked.answer()
        # Whether all is done by now is for the moment to say.
        assert answer == expected or (name.startswith("cuStreamQuery") and {answer, expected} == {SUCCESS, NOT_READY})
        assert len(manager.said(wire.Request)) == 0, name
    for name in known["submits"]:
        expected = bare.do(f"submits {name}")
        requests = len(manager.said(wire.Request))
        hooked.tell(f"submits {name}")
        manager.hears(wire.Request, requests + 1)
        assert hooked.idle(), name
        number = manager.grant_until(hooked.answers)
        assert hooked.answer() == [expected], name
        succeeded += expected == SUCCESS
        manager.revoke()
        manager.hears_release(number)
    # All but those whose addresses have 32 bits.
    assert succeeded > 100
