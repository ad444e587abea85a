"""How far shares are from the rule, in the worst of all windows of a run."""

from dataclasses import dataclass
from functools import partial

from bench.figures import division_error_percent, median, worst_share_error_percent
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import Saturating
from edgeshare.cli.demo_plan import executed_ns
from edgeshare.units import NS_PER_MS, NS_PER_S

TARGET = Target(1.0)
SETTLE_NS = 2 * NS_PER_S
STEP_NS = 100 * NS_PER_MS
"""Windows begin so far apart."""

KERNEL_US = 1_000


@dataclass(frozen=True)
class Case:
    """Clients that all have work, and what each has to get of the GPU."""

    requests: tuple[int, ...]
    limits: tuple[int, ...]
    expected_percent: tuple[float, ...]
    kernels_us: tuple[int, ...]
    control: bool = False
    """Whether to show also what they get with no edgeshare. For shares that differ: that has to miss."""

    @property
    def name(self) -> str:
        text = "/".join(map(str, self.requests))
        if any(limit < 100 for limit in self.limits):
            text += " with limits " + "/".join(map(str, self.limits))
        if len(set(self.kernels_us)) > 1:
            text += " with kernels of " + "/".join(f"{us / 1000:g}" for us in self.kernels_us) + " ms"
        return text


def lent(*requests: int, control: bool) -> Case:
    """A case in which requests of 100 % in all are what each gets."""
    count = len(requests)
    return Case(requests, (100,) * count, tuple(map(float, requests)), (KERNEL_US,) * count, control)


CASES = (
    lent(50, 50, control=False),
    lent(70, 30, control=True),
    lent(60, 30, 10, control=True),
    Case((50, 50), (100, 100), (50.0, 50.0), (100, 10_000)),
    Case((25, 25), (25, 25), (25.0, 25.0), (KERNEL_US, KERNEL_US)),
)


def measurements(effort: Effort) -> list[Measurement]:
    """One for each scheduling and case, and for its control."""
    return [
        Measurement(
            f"shares {case.name}, {scheduling}{', no hook' if control else ''}",
            partial(measure, effort, scheduling, case, control),
        )
        for scheduling in SCHEDULINGS
        for case in CASES
        for control in ((False, True) if case.control else (False,))
    ]


def measure(effort: Effort, scheduling: str, case: Case, control: bool, bench: Bench) -> list[Row]:
    """Runs a case several times (a control, which misses by far, once); of each the worst client of its worst window.
    A machine that stops for some milliseconds takes GPU time from everybody: what is off about who got what was
    executed stands beside it."""
    names = [f"client-{index}" for index in range(len(case.requests))]
    clients = [
        Saturating(name, kernel_us, None if control else request, limit)
        for name, kernel_us, request, limit in zip(names, case.kernels_us, case.requests, case.limits, strict=True)
    ]
    expected = dict(zip(names, case.expected_percent, strict=True))
    window_s = effort.control_window_s if control else effort.share_window_s
    errors, divisions = [], []
    for _ in range(1 if control else effort.share_runs):
        run = bench.laboratory(scheduling).saturate(clients, effort.control_s if control else effort.share_s)
        errors.append(
            worst_share_error_percent(
                run.intervals,
                expected,
                run.begin_ns + SETTLE_NS,
                run.end_ns,
                window_ns=round(window_s * NS_PER_S),
                step_ns=STEP_NS,
            )
        )
        executed = executed_ns(run.intervals, run.begin_ns + SETTLE_NS, run.end_ns)
        divisions.append(division_error_percent(executed, expected))
    settings: dict[str, str | float] = {"scheduling": scheduling, "shares": case.name, "window_s": window_s}
    if control:
        settings["control"] = "no hook"
    note = (
        f"of what was executed, the parts are off by {median(divisions):.3f} points: the rest is time that nobody used"
    )
    return [Row("share error", "points", errors, settings, target=TARGET, must_miss=control, note=note)]
