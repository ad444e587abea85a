"""What the simulated GPUs executed, and for whom."""

import time
from collections.abc import Collection

from edgeshare.contract.units import NS_PER_S
from simgpu.machine import Machine
from tests.kit.processes.errors import NodeError

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


class Together:
    """Programs of these names, from now on."""

    def __init__(self, machine: Machine, names: Collection[str]) -> None:
        self._machine = machine
        self._names = names
        self._begin_ns, self._before_ns = machine.look(), self._executed_ns()

    def percents(self) -> Percents:
        """What they have executed since, of one GPU, once the last of them has executed something worth telling. Raises
        NodeError where that does not come, or anything else is executed meanwhile."""
        deadline_s = time.monotonic() + BEGIN_S
        while min((since_ns := self._since_ns()).values()) < LEAST_NS:
            if time.monotonic() > deadline_s:
                raise NodeError(f"{since_ns}: one of them executed less than {LEAST_NS} ns within {BEGIN_S} s")
            time.sleep(LOOK_S)
        found = executed_percents(self._machine, self._begin_ns, self._machine.look())
        other, shared = sorted(found, key=len)
        if other or shared.keys() != set(self._names):
            names = ", ".join(self._names)
            raise NodeError(f"of two GPUs one executed {shared}, not {names} alone, and the other {other}")
        return shared

    def _executed_ns(self) -> dict[str, int]:
        gpus = [self._machine.executed_ns(gpu) for gpu in range(self._machine.gpu_count)]
        return {name: sum(gpu.get(name, 0) for gpu in gpus) for name in self._names}

    def _since_ns(self) -> dict[str, int]:
        return {name: ns - self._before_ns[name] for name, ns in self._executed_ns().items()}


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
