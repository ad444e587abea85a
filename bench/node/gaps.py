"""What a program that leaves gaps keeps beside others: of what it has alone, and of what it has without edgeshare."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import SPARE_S, Client, Laboratory, pausing, sleep_until_ns
from edgeshare.contract.units import NS_PER_S
from simgpu.stage.programs import begin_together


@dataclass(frozen=True)
class Case:
    """Programs that share a GPU, of which the first is measured against what it has alone."""

    what: str
    """What they do, for people."""
    clients: tuple[Client, ...]
    of_alone: Target | None = None
    """Of the first, in percent of what it has alone."""
    of_no_hook: Target | None = None
    """Of whoever keeps least, in percent of what it has beside the same programs without edgeshare."""


def leaving_gaps(percent: int, kernel_us: int, count: int, think_us: int) -> Client:
    """A program that submits so many kernels, waits for them, and then thinks."""
    return Client(f"percent-{percent}", str(kernel_us), percent, arguments=pausing(count, think_us))


CASES = (
    Case(
        "20 %: 8 x 20 us, 0.4 ms without work; 80 %: 0.3 ms without a pause",
        (leaving_gaps(20, 20, 8, 400), Client("percent-80", "300", 80)),
        of_alone=Target(60, at_least=True),
    ),
    Case(
        "70 %: 1 ms, 0.5 ms without work; 30 %: 50 us, 50 us without work",
        (leaving_gaps(70, 1_000, 1, 500), leaving_gaps(30, 50, 1, 50)),
        of_alone=Target(60, at_least=True),
    ),
    Case(
        "50, 30 and 20 %, each 4 x 5 us, 50 us without work",
        tuple(leaving_gaps(percent, 5, 4, 50) for percent in (50, 30, 20)),
        of_no_hook=Target(85, at_least=True),
    ),
)


def measurements(effort: Effort) -> list[Measurement]:
    """Each in each scheduling, one after the other: gaps of microseconds feel what else a machine does."""
    return [
        Measurement(f"gaps, {case.what}, {scheduling}", partial(measure, effort, case, scheduling))
        for case in CASES
        for scheduling in SCHEDULINGS
    ]


def measure(effort: Effort, case: Case, scheduling: str, bench: Bench) -> list[Row]:
    """The first alone, all without the hook, and then all with it: a manager that has seen programs without the hook
    beside its clients has these take turns for a while."""
    laboratory = bench.laboratory(scheduling, purpose=f"gaps-{CASES.index(case)}")
    bare = [replace(client, percent=None) for client in case.clients]
    first = case.clients[0].name
    alone = [use(laboratory, bare[:1], effort)[first] for _ in range(effort.gaps_runs)]
    unmanaged = [use(laboratory, bare, effort) for _ in range(effort.gaps_runs)]
    managed = [use(laboratory, case.clients, effort) for _ in range(effort.gaps_runs)]
    settings: dict[str, str | float] = {"programs": case.what, "scheduling": scheduling}
    beside = [run[first] for run in managed]
    return [
        Row(
            "GPU time beside others, of what it has alone",
            "%",
            [100 * part / whole for part, whole in zip(beside, alone, strict=True)],
            settings,
            with_edgeshare=beside,
            without_edgeshare=alone,
            target=case.of_alone,
        ),
        Row(
            "GPU time, of what it has without edgeshare: the least",
            "%",
            [
                min(100 * run[name] / without[name] for name in run)
                for run, without in zip(managed, unmanaged, strict=True)
            ],
            settings,
            with_edgeshare=[sum(run.values()) for run in managed],
            without_edgeshare=[sum(run.values()) for run in unmanaged],
            target=case.of_no_hook,
            note="with and without: percent of the GPU, all together",
        ),
    ]


def use(laboratory: Laboratory, clients: Sequence[Client], effort: Effort) -> dict[str, float]:
    """The part of the GPU that each of these has beside the others, in percent."""
    with ExitStack() as stack:
        programs = [
            stack.enter_context(laboratory.client(client, client.argv_told(effort.gaps_s + SPARE_S), len(clients)))
            for client in clients
        ]
        begin_ns = begin_together(programs)
        sleep_until_ns(begin_ns + round(effort.gaps_settle_s * NS_PER_S))
        before, before_ns = laboratory.stage.machine.executed_ns(0), time.monotonic_ns()
        sleep_until_ns(begin_ns + round(effort.gaps_s * NS_PER_S))
        after, after_ns = laboratory.stage.machine.executed_ns(0), time.monotonic_ns()
        for program in programs:
            program.check()
    names = [client.name for client in clients]
    return {name: 100 * (after[name] - before.get(name, 0)) / (after_ns - before_ns) for name in names}
