"""How far shares are from the rule, in the worst of all windows of a run."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from bench.figures import held_turns, median, worst_share_error_percent
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import Client, Run
from edgeshare.contract.units import NS_PER_MS, NS_PER_S

TARGET = Target(0.5)
SETTLE_NS = 2 * NS_PER_S
STEP_NS = 100 * NS_PER_MS
"""Windows begin so far apart."""

RULE_WINDOW_S = 10
"""What the target is for. The rule's bound is one of time, so that over a tenth of it a share may be ten times as far
off."""

LARGE_GRID = 4_096
"""Blocks: some 70 for each multiprocessor of the simulated L4."""


@dataclass(frozen=True)
class Case:
    """Clients that all have work, what each submits, and what each has to get of the GPU."""

    requests: tuple[int, ...]
    kernels: tuple[str, ...]
    """As burn's --kernel-us has them: one for all, or one for each client."""
    what: str
    """What they submit, for people."""
    limits: tuple[int, ...] = ()
    """One for each client; none given: all of it."""
    arguments: tuple[str, ...] = ()
    by_held_time: bool = False
    """Whether gaps within a turn count as its client's: it is what the rule charges."""
    side_by_side: bool = True
    """Whether the machine is large enough to measure both schedulings at a time."""

    @property
    def name(self) -> str:
        counted: list[str] = []
        for request in dict.fromkeys(self.requests):
            count = self.requests.count(request)
            counted.append(f"{count} x {request}" if count > 2 else "/".join([str(request)] * count))
        text = " + ".join(counted) if any("x" in part for part in counted) else "/".join(counted)
        return f"{text}, limits {'/'.join(map(str, self.limits))}" if self.limits else text

    @property
    def lent(self) -> bool:
        """Whether all of the GPU is somebody's."""
        return not self.limits

    @property
    def even(self) -> bool:
        """Whether a GPU with no edgeshare might divide itself like this."""
        return self.lent and len(set(self.requests)) == 1

    def clients(self, hooked: bool) -> list[Client]:
        count = len(self.requests)
        kernels = self.kernels * count if len(self.kernels) == 1 else self.kernels
        limits = self.limits or (100,) * count
        return [
            Client(f"client-{index}", of_one, request if hooked else None, limit, self.arguments)
            for index, (request, of_one, limit) in enumerate(zip(self.requests, kernels, limits, strict=False))
        ]

    def error_percent(self, run: Run, window_s: float, of_executed: bool) -> float:
        """The worst client of the worst window."""
        return worst_share_error_percent(
            held_turns(run.intervals) if self.by_held_time else run.intervals,
            {f"client-{index}": float(request) for index, request in enumerate(self.requests)},
            run.begin_ns + SETTLE_NS,
            run.end_ns,
            window_ns=round(window_s * NS_PER_S),
            step_ns=STEP_NS,
            of_executed=of_executed,
        )


LENGTHS = {"100": "100 us", "1000": "1 ms", "10000": "10 ms"}
MIXED = ("20:95,5000:5",)

CASES = (
    *(
        Case(requests, (kernel,), f"kernels of {text}", limits)
        for kernel, text in LENGTHS.items()
        for requests, limits in (
            ((50, 50), ()),
            ((70, 30), ()),
            ((60, 30, 10), ()),
            ((25, 25, 25, 25), ()),
            ((25, 25), (25, 25)),
        )
    ),
    Case((70, 30), ("1000",), "kernels of 1 ms, large grids", arguments=("--grid", str(LARGE_GRID))),
    Case((70, 30), ("100",), "launch, wait: kernels of 100 us", arguments=("--mode", "sync"), by_held_time=True),
    Case(
        (70, 30),
        ("1000",),
        "launch, wait, think 50 us: kernels of 1 ms",
        arguments=("--mode", "think", "--think-us", "50"),
        by_held_time=True,
    ),
    Case((70, 30), ("100",), "graphs of 20 kernels of 100 us", arguments=("--graph", "20")),
    Case((50, 50), ("100", "10000"), "kernels of 100 us beside 10 ms"),
    Case((70, 30), MIXED, "95 % of 20 us, 5 % of 5 ms"),
    Case((36, *(1,) * 64), ("1000",), "kernels of 1 ms", side_by_side=False),
)


def measurements(effort: Effort) -> list[Measurement]:
    """One for each case, and one for its control."""
    return [
        Measurement(
            f"shares {case.name}: {case.what}{', no hook' if control else ''}", partial(measure, effort, case, control)
        )
        for case in CASES
        for control in ((False,) if case.even else (False, True))
    ]


def measure(effort: Effort, case: Case, control: bool, bench: Bench) -> list[Row]:
    """Runs a case several times (a control, which misses by far, once), in all schedulings: side by side, each on a
    machine with a manager of its own, where two cores suffice for that."""
    laboratories = [bench.laboratory(scheduling) for scheduling in SCHEDULINGS]
    clients = case.clients(hooked=not control)
    seconds = effort.control_s if control else effort.share_s
    runs: list[list[Run]] = []
    with ThreadPoolExecutor(max_workers=len(laboratories) if case.side_by_side else 1) as pool:
        for _ in range(1 if control else effort.share_runs):
            runs.append(list(pool.map(lambda laboratory: laboratory.run(clients, seconds), laboratories)))
    return [
        row(effort, scheduling, case, control, of_one)
        for scheduling, of_one in zip(SCHEDULINGS, zip(*runs, strict=True), strict=True)
    ]


def row(effort: Effort, scheduling: str, case: Case, control: bool, runs: tuple[Run, ...]) -> Row:
    """A share is what the rule divides: of what was executed (or held) where all of the GPU is somebody's, of the
    window's time where limits leave some of it idle. What it is of the window's time, time that nobody used
    included, stands beside it."""
    window_s = effort.control_window_s if control else effort.share_window_s
    errors = [case.error_percent(run, window_s, of_executed=case.lent) for run in runs]
    of_window = median(case.error_percent(run, window_s, of_executed=False) for run in runs)
    settings: dict[str, str | float] = {"shares": case.name, "work": case.what, "scheduling": scheduling}
    if control:
        settings["control"] = "no hook"
    if window_s != RULE_WINDOW_S:
        settings["window"] = f"{window_s:g} s"
    judged = "held time" if case.by_held_time else "GPU time"
    note = f"by {judged}; {of_window:.3f} points of the window's whole time" if case.lent else f"by {judged}"
    target = TARGET if control else Target(TARGET.value * RULE_WINDOW_S / window_s)
    return Row("share error", "points", errors, settings, target=target, must_miss=control, note=note)
