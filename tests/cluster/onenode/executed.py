"""What the simulated GPUs executed, and for whom."""

import time
from collections.abc import Collection

from edgeshare.contract.units import NS_PER_S
from onenode.errors import NodeError
from simgpu.machine import Machine

BEGIN_S = 120  # a safety limit, as for pods
LOOK_S = 0.05  # between two looks at the machine, which tells nobody when something begins
Percents = dict[str, float]
"""Name of a process (SIMGPU_TAG) → percent of a stretch of time."""

LEAST_NS = 3 * NS_PER_S
"""Who executes the least has executed so much when the order is judged. Who holds the GPU while other work takes the
machine away for a quarter of a second is charged for that, and executes as much less: within two seconds one of 30 %
may then have less than one of 20 %, but not within fifteen."""


def wait_until_executing(machine: Machine, *names: str) -> None:
    """Return when live processes of all these names have executed something. Raises NodeError."""
    deadline_s = time.monotonic() + BEGIN_S
    while missing := set(names) - {each.tag for each in machine.processes() if each.alive and any(each.executed_ns)}:
        if time.monotonic() > deadline_s:
            raise NodeError(f"{', '.join(sorted(missing))}: nothing was executed within {BEGIN_S} s")
        time.sleep(LOOK_S)


def execute_together(machine: Machine, names: Collection[str]) -> Percents:
    """What programs of these names execute from now on, of one GPU, until the last of them has executed something worth
    telling. Raises NodeError where that does not come, or anything else is executed meanwhile."""

    def executed_ns() -> dict[str, int]:
        gpus = [machine.executed_ns(gpu) for gpu in range(machine.gpu_count)]
        return {name: sum(gpu.get(name, 0) for gpu in gpus) for name in names}

    begin_ns, before = machine.look(), executed_ns()
    deadline_s = time.monotonic() + BEGIN_S
    while min((since := {name: ns - before[name] for name, ns in executed_ns().items()}).values()) < LEAST_NS:
        if time.monotonic() > deadline_s:
            raise NodeError(f"{since}: one of them executed less than {LEAST_NS} ns within {BEGIN_S} s")
        time.sleep(LOOK_S)
    other, shared = sorted(executed_percents(machine, begin_ns, machine.look()), key=len)
    if other or shared.keys() != set(names):
        raise NodeError(f"of two GPUs one executed {shared}, not {', '.join(names)} alone, and the other {other}")
    return shared


def ranked(percents: Percents) -> list[str]:
    """Their names, from the one that executed most. How much each executes is judged where time is exact
    (tests/virtual): other work on the machine takes from a program what no rule gives back."""
    return sorted(percents, key=lambda name: percents[name], reverse=True)


def executed_percents(machine: Machine, begin_ns: int, end_ns: int) -> list[Percents]:
    """Who used how much of each GPU between two times on CLOCK_MONOTONIC, by the machine's own log.

    The log of a GPU reaches back 131,072 executions. Raises ValueError when that is not far enough.
    """
    tags = machine.tags()
    found = []
    for gpu in range(machine.gpu_count):
        intervals, cursor = machine.log(gpu)
        if cursor > len(intervals) and intervals[0].begin_ns > begin_ns:
            raise ValueError(f"the log of GPU {gpu} begins {intervals[0].begin_ns - begin_ns} ns too late")
        percents: Percents = {}
        for each in intervals:
            used_ns = min(each.end_ns, end_ns) - max(each.begin_ns, begin_ns)
            if used_ns > 0:
                tag = tags[each.process]
                percents[tag] = percents.get(tag, 0.0) + 100 * used_ns / (end_ns - begin_ns)
        found.append(percents)
    return found
