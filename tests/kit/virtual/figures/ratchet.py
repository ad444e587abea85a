"""What each figure was when it was last recorded: a test fails where it is worse by more than a tenth.

The runs are exact, so that nothing but a change of the code moves a figure. A change that makes one better, or worse
for a good reason, records all of them anew: ``python -m tests.kit.virtual.figures.record``.

What it cannot see: a value of at most 0.55 of `LEAST` that doubles, and whatever moves by itself. Where memory lies
says which functions are told apart. With nothing else changed it has moved what is missing of programs whose streams
run beside each other, by up to three times, and by less than a tenth what programs that think lack; no other figure.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from edgeshare.contract.errors import NotFound

FILE = Path(__file__).with_name("recorded.json")
SHORTFALLS = Path(__file__).with_name("shortfalls.json")
TOLD_TOO_MUCH = Path(__file__).with_name("told_too_much.json")
MARGIN = 1.1
LEAST = 0.001
"""What is smaller is as good as nothing. Points of a share or a limit, over ten seconds: one kernel of 100 us."""


def recorded() -> dict[str, dict[str, list[float]]]:
    """Figure → row → its value with each seed."""
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else {}


def allowed(figure: str, row: str, seed: int, target: float) -> float:
    """How large it may be: within its target where it was that, and elsewhere no worse. Raises NotFound for a row that
    was never recorded."""
    try:
        value = recorded()[figure][row][seed - 1]
    except (KeyError, IndexError):
        raise NotFound(
            f"{FILE.name} has no {figure} of {row!r}: run python -m tests.kit.virtual.figures.record"
        ) from None
    most = MARGIN * max(value, LEAST)
    return min(most, target) if value <= target else most


def record(figures: Mapping[str, Mapping[str, list[float]]]) -> None:
    """Replaces what was recorded: a line a row."""
    blocks = []
    for name, rows in figures.items():
        lines = (f"  {_text(row)}: {[round(value, 4) for value in values]}" for row, values in rows.items())
        blocks.append(f" {_text(name)}: {{\n" + ",\n".join(lines) + "\n }")
    FILE.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def _text(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def shortfalls() -> dict[str, set[str]]:
    """Name of a random case → the kinds of flaws that it had when that was recorded, or came close to."""
    return {name: set(kinds) for name, kinds in json.loads(SHORTFALLS.read_text(encoding="utf-8")).items()}


def record_shortfalls(found: Mapping[str, Iterable[str]]) -> None:
    """Replaces what was recorded."""
    lines = (f' "{name}": {json.dumps(sorted(kinds))}' for name, kinds in found.items() if kinds)
    SHORTFALLS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def told_too_much() -> int:
    """Of how many random cases too much GPU time was told when that was recorded."""
    return int(json.loads(TOLD_TOO_MUCH.read_text(encoding="utf-8")))


def record_told_too_much(count: int) -> None:
    """Replaces what was recorded."""
    TOLD_TOO_MUCH.write_text(f"{count}\n", encoding="utf-8")
