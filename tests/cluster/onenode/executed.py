"""What the simulated GPUs executed, and for whom."""

import time
from collections.abc import Mapping

from onenode.errors import NodeError
from simgpu.machine import Machine

BEGIN_S = 120  # a safety limit, as for pods
LOOK_S = 0.05  # between two looks at the machine, which tells nobody when something begins
Percents = dict[str, float]
"""Name of a process (SIMGPU_TAG) → percent of a stretch of time."""

WINDOW_S, WINDOWS = 4, 12
TOLERANCE_PERCENT = 1.0
BUSY_PERCENT = 90  # where the processors have other work too, a GPU has to wait for its next kernel now and then


def wait_until_executing(machine: Machine, *names: str) -> None:
    """Return when live processes of all these names have executed something. Raises NodeError."""
    deadline_s = time.monotonic() + BEGIN_S
    while missing := set(names) - {each.tag for each in machine.processes() if each.alive and any(each.executed_ns)}:
        if time.monotonic() > deadline_s:
            raise NodeError(f"{', '.join(sorted(missing))}: nothing was executed within {BEGIN_S} s")
        time.sleep(LOOK_S)


def execute_for(machine: Machine, seconds: float) -> list[Percents]:
    """Let the programs run for so long from now, and return what `executed_percents` says of that time."""
    begin_ns = machine.look()
    time.sleep(seconds)
    return executed_percents(machine, begin_ns, machine.look())


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


def come_to_have_shares(machine: Machine, shares: Mapping[str, float]) -> bool:
    """Whether of two GPUs one has nothing to do and the other's processes have their shares in one of a few windows,
    from now on: other work on the machine takes from a program what no rule gives back, and shares that are wrong are
    so in each."""

    def has_them() -> bool:
        other, shared = sorted(execute_for(machine, WINDOW_S), key=len)
        return not other and have_shares(shared, shares)

    return any(has_them() for _ in range(WINDOWS))


def have_shares(executed: Percents, shares: Mapping[str, float]) -> bool:
    """Whether a GPU was kept busy, by these processes alone, and each had its share of what it executed."""
    busy_percent = sum(executed.values())
    print(f"executed: {executed}, together {busy_percent:.2f} %")
    return (
        executed.keys() == shares.keys()
        and busy_percent > BUSY_PERCENT
        and all(abs(100 * executed[name] / busy_percent - shares[name]) <= TOLERANCE_PERCENT for name in shares)
    )
