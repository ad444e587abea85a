"""A pytest plugin: runs ``sharemgr.node.turns`` from its sources, whatever was compiled of it, and writes every way
that an allocation's phase went into the file of ``--phases``, as JSON."""

import importlib.util
import json
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = "sharemgr.node.turns."


class Sources:
    """Finds the modules of the package as if nothing had been compiled."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        file = ROOT / f"{name.replace('.', '/')}.py"
        if not name.startswith(PACKAGE) or not file.exists():
            return None
        return importlib.util.spec_from_file_location(name, file, loader=SourceFileLoader(name, str(file)))


sys.meta_path.insert(0, Sources)

from sharemgr.node.turns.contender import Contender  # noqa: E402, as it is to be found in the way above
from sharemgr.node.turns.phases import Phase  # noqa: E402

slot = Contender.__dict__["phase"]
seen: set[tuple[str, str]] = set()


def get_phase(contender: Contender) -> Phase:
    phase: Phase = slot.__get__(contender, Contender)
    return phase


def set_phase(contender: Contender, phase: Phase) -> None:
    before = getattr(contender, "phase", phase)
    if before is not phase:
        seen.add((before.name, phase.name))
    slot.__set__(contender, phase)


Contender.phase = property(get_phase, set_phase)  # type: ignore[assignment,misc]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--phases", type=Path, help="where to write the ways that phases went")


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.getoption("--phases").write_text(json.dumps(sorted(seen)))
