"""What is judged of many random programs together: how many of them there are of a kind, whichever tests ran them."""

import json
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path

SHORT = "falls short"
"""The property of a test in which it tells of a case where only their number is judged."""

DEVIATIONS = 2.5
"""One count of 160 is larger than that by chance."""


def most_short(known: int, of_known: int, count: int) -> int:
    """How many of ``count`` further programs may fall short where of ``of_known`` ``known`` do: that part of them, and
    what chance may add. It had its part in the known number, too. Pure."""
    part = known / of_known
    deviation = sqrt(part * (1 - part) * count * (1 + count / of_known))
    return int(part * count + DEVIATIONS * deviation)


def note(files: Sequence[Path], own: int, found: Mapping[str, str]) -> list[dict[str, str]] | None:
    """Writes what one of several tests found, each of which has a file. Returns what each found, where all have written
    that: where several are the last at once, all of them have it."""
    half = files[own].with_suffix(".half")
    half.write_text(json.dumps(found), encoding="utf-8")
    half.rename(files[own])
    if not all(file.exists() for file in files):
        return None
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]
