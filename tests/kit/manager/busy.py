"""Programs that keep a node's GPU busy, and what it executed of each."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from edgeshare.contract.units import NS_PER_MS
from edgeshare.v1.status_pb2 import NodeStatus
from simgpu.machine import Machine
from simgpu.native import BURN
from tests.kit.manager.testbed import Testbed
from tests.kit.processes.forked import Forked
from tests.kit.processes.waiting import PATIENCE_S


def burn(testbed: Testbed, name: str, *arguments: str, percent: int, limit: int = 100) -> Forked:
    """A program that keeps GPU 0 busy under a share."""
    options = ("--gpu", "0", "--percent", str(percent), "--limit", str(limit))
    command = ("env", f"SIMGPU_TAG={name}", str(BURN), "--seconds", "600", *arguments)
    return testbed.fork(*testbed.run_arguments(*options, "--", *command))


def executed_until(machine: Machine, names: Collection[str], least_ms: int, gpu: int = 0) -> dict[str, int]:
    """What the GPU executes for each of these programs, in ns, from now until the last of them has so many ms."""
    before = machine.executed_ns(gpu)

    def executed() -> dict[str, int]:
        now = machine.executed_ns(gpu)
        return {name: now.get(name, 0) - before.get(name, 0) for name in names}

    return until_each_has(executed, least_ms)


def until_each_has(spent: Callable[[], dict[str, int]], least_ms: int) -> dict[str, int]:
    """What programs have had of a device, in ns, as soon as the last of them has had so many ms."""
    deadline_s = time.monotonic() + PATIENCE_S
    while min((found := spent()).values()) < least_ms * NS_PER_MS:
        assert time.monotonic() < deadline_s, f"one of them executes nothing, or too little: {found} ns"
        # A simulated device tells nobody when it has executed something.
        time.sleep(0.01)
    return found


def assert_ranked(executed: Mapping[str, float], names: Sequence[str]) -> None:
    """The first one executed most, the last one least. How much is judged where time is exact: other work on the
    machine takes from a program what no rule gives back."""
    assert sorted(executed, key=lambda name: executed[name], reverse=True) == list(names), executed


def all_granted(count: int) -> Callable[[NodeStatus], bool]:
    def holds(status: NodeStatus) -> bool:
        return sum(each.grants > 0 for each in status.allocations) == count

    return holds
