"""What came of a case, and the figures that tests judge. Pure; times in ns, parts in percent."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

from bench.figures import held_turns, worst_share_error_percent
from simgpu.stage.executed import Interval
from tests.kit.virtual.cases.case import Case


class DiedError(Exception):
    """The simulation ended without an answer; its text says where each thread was."""


class Work(NamedTuple):
    """One entry of a queue."""

    stream: int
    kind: str
    entry: int
    """Its number within its context."""


@dataclass(frozen=True)
class Report:
    """What happened in one case's measured time, step by step."""

    case: Case
    steps: tuple[Mapping[str, Any], ...]
    """Sums since the start, at each edge of a step."""
    clients: Mapping[str, Mapping[str, int]]
    """``struct outcome`` of programs/program.h."""
    attackers: Mapping[str, Mapping[str, int]]
    """``struct attack`` of programs/attacker.h."""
    points_of: Mapping[str, int]
    figures: Mapping[str, int | str]
    intervals: tuple[Interval, ...]
    """What the GPU executed, where the case asked for it."""
    works: tuple[Work, ...]
    """Of which entry each interval is."""

    @classmethod
    def read(cls, case: Case, answer: Mapping[str, Any]) -> Self:
        """From what ``simulate.py`` answered. Raises DiedError."""
        if "died" in answer:
            raise DiedError(f"exit status {answer['died']} of {case.line()}\n{answer.get('said', '')}")
        return cls(
            case,
            tuple(answer["steps"]),
            answer["clients"],
            answer["attackers"],
            answer["points_of"],
            answer["figures"],
            tuple(Interval(*each) for each in answer["intervals"]),
            tuple(Work(*each) for each in answer["works"]),
        )

    @cached_property
    def measured_ns(self) -> int:
        return int(self.steps[-1]["now_ns"] - self.steps[0]["now_ns"])

    def of(self, what: str, name: str) -> int:
        """How much of something a client got in the measured time."""
        return int(self.steps[-1][what][name] - self.steps[0][what][name])

    def busy_percent(self, name: str) -> float:
        """GPU time of the measured time."""
        return 100 * self.of("executed_ns", name) / self.measured_ns

    @property
    def used_percent(self) -> float:
        """GPU time of all."""
        return sum(self.busy_percent(name) for name in self.case.names)

    def share_percent(self, name: str) -> float:
        """GPU time of what was executed."""
        executed = {each: self.of("executed_ns", each) for each in self.case.names}
        return 100 * executed[name] / (sum(executed.values()) or 1)

    def offences(self, name: str) -> dict[str, int]:
        """What the manager counted of an allocation's offences in the measured time, by their kinds."""
        first, last = (self.steps[edge]["offences"][name] for edge in (0, -1))
        return {kind: last[kind] - first.get(kind, 0) for kind in last if last[kind] > first.get(kind, 0)}

    def gpu_error_percent(self, name: str) -> float:
        """How far the GPU time that status tells at the end is from what was executed in the same time, of that."""
        return 100 * self.gpu_error_ns(name) / (self._executed_told_of_ns(name) or 1)

    def gpu_error_ns(self, name: str) -> float:
        """The same as a time."""
        return float(self.steps[-1]["gpu_ns"][name] - self._executed_told_of_ns(name))

    def _executed_told_of_ns(self, name: str) -> float:
        last = self.steps[-1]
        until_ns = 0 if last["told_of_all"] else self._executed_until_ns(name, last["now_ns"] - last["told_of_ns"])
        return float(last["executed_ns"][name] - until_ns)

    def _executed_until_ns(self, name: str, time_ns: int) -> float:
        """What a client had executed by then, as if evenly within each step."""
        for before, after in pairwise(self.steps):
            if before["now_ns"] <= time_ns < after["now_ns"]:
                part = (time_ns - before["now_ns"]) / (after["now_ns"] - before["now_ns"])
                return float(before["executed_ns"][name] * (1 - part) + after["executed_ns"][name] * part)
        raise ValueError("the window of what is told began before the measured time")

    def worst_share_error_percent(self, window_s: float, of_executed: bool = True) -> float:
        """The largest distance of any client from its request, in points, over all windows of this length."""
        window = round(window_s * 1000 / self.case.step_ms)
        if len(self.steps) <= window:
            raise ValueError("the measured time is shorter than one window")
        worst = 0.0
        for before, after in zip(self.steps, self.steps[window:], strict=False):
            executed = {name: after["executed_ns"][name] - before["executed_ns"][name] for name in self.case.names}
            of_ns = sum(executed.values()) if of_executed else after["now_ns"] - before["now_ns"]
            for name, client in zip(self.case.names, self.case.clients, strict=True):
                worst = max(worst, abs(100 * executed[name] / (of_ns or 1) - client.percent))
        return worst

    def worst_held_error_percent(self, window_s: float) -> float:
        """The same of turns as the GPU saw them, gaps within a turn included. The case must have asked for
        intervals."""
        return worst_share_error_percent(
            held_turns(self.intervals),
            {name: float(client.percent) for name, client in zip(self.case.names, self.case.clients, strict=True)},
            int(self.steps[0]["now_ns"]),
            int(self.steps[-1]["now_ns"]),
            window_ns=round(window_s * 1e9),
            step_ns=self.case.step_ms * 1_000_000,
            of_executed=True,
        )
