"""What the demo runs, what each workload has to get by the rule, and whether it got it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import NS_PER_S, UNITS_PER_DEVICE
from simgpu.stage.executed import Interval, executed_ns

SETTLE_NS = 2 * NS_PER_S
"""Start of each phase that is not judged: the debts of the one before are paid back meanwhile."""

TOLERANCE_PERCENT = 1.0
"""How far a share may be from the rule, in percentage points."""

MIN_SECONDS = 9
"""Shorter, and less than a second of each third would be judged."""


@dataclass(frozen=True)
class Workload:
    """One program of the demo."""

    name: str
    gpu: int
    """Index of its GPU."""
    request_percent: int
    limit_percent: int
    pauses: bool
    """Whether it stops submitting for the middle phase."""


WORKLOADS = (
    Workload("red", gpu=0, request_percent=50, limit_percent=100, pauses=True),
    Workload("green", gpu=0, request_percent=30, limit_percent=100, pauses=False),
    Workload("blue", gpu=0, request_percent=20, limit_percent=100, pauses=False),
    Workload("alone", gpu=1, request_percent=40, limit_percent=100, pauses=False),
)


@dataclass(frozen=True)
class Phase:
    """A part of the demo, in nanoseconds since its start."""

    name: str
    begin_ns: int
    end_ns: int
    paused: bool
    """Whether the workloads that pause do so now."""

    @property
    def judged_from_ns(self) -> int:
        return self.begin_ns + SETTLE_NS


def make_phases(seconds: int) -> tuple[Phase, ...]:
    """The three thirds of a demo; raises InvalidRequest where they would be too short to judge."""
    if seconds < MIN_SECONDS:
        raise InvalidRequest(
            f"--seconds {seconds} is too short: the first {SETTLE_NS // NS_PER_S} s of each third are "
            f"not judged; give it {MIN_SECONDS} or more"
        )
    third_ns = seconds * NS_PER_S // 3
    names = ("all submit", "one pauses", "all again")
    return tuple(
        Phase(name, index * third_ns, (index + 1) * third_ns, paused=index == 1) for index, name in enumerate(names)
    )


def rule_percents(workloads: Sequence[Workload]) -> dict[str, float]:
    """What each of these, all with work on one device, gets: the device divided in proportion to the
    requests, and what a limit keeps from one divided among the others in the same way."""
    shares: dict[str, float] = {}
    rest = list(workloads)
    left = float(UNITS_PER_DEVICE)
    while rest:
        weight = sum(workload.request_percent for workload in rest)
        capped = [w for w in rest if w.limit_percent < left * w.request_percent / weight]
        for workload in capped or rest:
            fair = left * workload.request_percent / weight
            shares[workload.name] = min(fair, float(workload.limit_percent))
        if not capped:
            break
        left -= sum(shares[workload.name] for workload in capped)
        rest = [workload for workload in rest if workload not in capped]
    return shares


def expected_percents(workloads: Sequence[Workload], phase: Phase) -> dict[str, float]:
    """What each workload of the demo has to get in a phase, in percent of its GPU."""
    expected = {workload.name: 0.0 for workload in workloads}
    for gpu in {workload.gpu for workload in workloads}:
        busy = [w for w in workloads if w.gpu == gpu and not (w.pauses and phase.paused)]
        expected |= rule_percents(busy)
    return expected


@dataclass(frozen=True)
class Share:
    """What one workload got in one phase."""

    workload: Workload
    expected_percent: float
    executed_percent: float

    @property
    def error_percent(self) -> float:
        """Percentage points above (or, negative, below) the rule."""
        return self.executed_percent - self.expected_percent

    @property
    def ok(self) -> bool:
        return abs(self.error_percent) <= TOLERANCE_PERCENT


@dataclass(frozen=True)
class PhaseResult:
    phase: Phase
    shares: tuple[Share, ...]

    @property
    def ok(self) -> bool:
        return all(share.ok for share in self.shares)


@dataclass(frozen=True)
class Verdict:
    phases: tuple[PhaseResult, ...]

    @property
    def ok(self) -> bool:
        """Whether every workload got what the rule says in every phase; with nothing to judge it did not."""
        return bool(self.phases) and all(result.ok for result in self.phases)

    def failures(self) -> list[str]:
        """A line for each share that is off, for people."""
        return [
            f"{share.workload.name} got {share.executed_percent:.2f} % of GPU {share.workload.gpu} while "
            f"'{result.phase.name}', the rule says {share.expected_percent:.2f} %"
            for result in self.phases
            for share in result.shares
            if not share.ok
        ]

    def as_json(self) -> dict[str, object]:
        """The stable shape that scripts rely on."""
        return {
            "ok": self.ok,
            "phases": [
                {
                    "name": result.phase.name,
                    "clients": [
                        {
                            "name": share.workload.name,
                            "request_percent": share.workload.request_percent,
                            "expected_percent": round(share.expected_percent, 3),
                            "executed_percent": round(share.executed_percent, 3),
                        }
                        for share in result.shares
                    ],
                }
                for result in self.phases
            ],
        }


class Tally:
    """Adds up what each workload executed: in the judged part of each phase, and lately."""

    def __init__(self, phases: Sequence[Phase], recent_window_ns: int) -> None:
        self._totals_ns: dict[Phase, dict[str, int]] = {phase: {} for phase in phases}
        self._recent_window_ns = recent_window_ns
        self._recent: list[Interval] = []

    def add(self, intervals: Sequence[Interval]) -> None:
        """Takes in what was executed since the last call; times are since the start."""
        for phase, totals_ns in self._totals_ns.items():
            for name, part_ns in executed_ns(intervals, phase.judged_from_ns, phase.end_ns).items():
                totals_ns[name] = totals_ns.get(name, 0) + part_ns
        self._recent += intervals

    def recent_percents(self, now_ns: int) -> dict[str, float]:
        """What each executed within the window that ends now, in percent of it."""
        begin_ns = now_ns - self._recent_window_ns
        self._recent = [interval for interval in self._recent if interval.end_ns > begin_ns]
        recent_ns = executed_ns(self._recent, begin_ns, now_ns)
        return {name: 100 * part_ns / self._recent_window_ns for name, part_ns in recent_ns.items()}

    def judge(self, workloads: Sequence[Workload]) -> Verdict:
        """Compares with the rule. What was executed up to the end of the last phase has to be in."""
        return Verdict(tuple(judge_phase(workloads, phase, totals_ns) for phase, totals_ns in self._totals_ns.items()))


def judge_phase(workloads: Sequence[Workload], phase: Phase, totals_ns: Mapping[str, int]) -> PhaseResult:
    """Compares what each workload executed in the judged part of a phase with the rule; one that is missing executed
    nothing."""
    expected = expected_percents(workloads, phase)
    judged_ns = phase.end_ns - phase.judged_from_ns
    return PhaseResult(
        phase, tuple(Share(w, expected[w.name], 100 * totals_ns.get(w.name, 0) / judged_ns) for w in workloads)
    )
