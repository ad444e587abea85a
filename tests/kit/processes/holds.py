"""Holds a program up between two of its lines, by chance, as a busy machine does."""

import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[3]
PRODUCT = tuple(f"{ROOT / package}/" for package in ("deviceplugin", "edgeshare", "labeller", "sharemgr"))


@dataclass(frozen=True)
class Chance:
    """At how many of the lines, as a part of one, and for how long. The same seed and code: the same lines."""

    seed: str
    part: float
    least_s: float
    most_s: float


class Holds:
    """What holds this process up: each line of the files of which ``held`` is true at most once."""

    def __init__(self, chance: Chance, held: Callable[[str], bool]) -> None:
        self.told: list[str] = []
        self._chance = chance
        self._held = held
        self._seen: set[tuple[str, int]] = set()

    def begin(self) -> None:
        """In this thread, and in those that begin from now on."""
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def end(self) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if self._held(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        place = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and place not in self._seen:
            self._seen.add(place)
            # By the line, not by the order: in which one a program comes by its lines, time decides.
            dice = random.Random(f"{self._chance.seed} {Path(place[0]).name}:{place[1]}")
            if dice.random() < self._chance.part:
                hold_s = dice.uniform(self._chance.least_s, self._chance.most_s)
                self.told.append(f"{place[0]}:{place[1]} {hold_s:.2f} s")
                time.sleep(hold_s)
        return self._line


def of_tests(path: str) -> bool:
    """Whether this is a file of tests, not of what they use."""
    return Path(path).name.startswith("test_")


def of_product(path: str) -> bool:
    return path.startswith(PRODUCT)
