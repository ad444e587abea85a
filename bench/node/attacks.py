"""What hostile clients of the manager cost two honest ones, of 60 and 20 percent, and the manager itself."""

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from bench.figures import longest_gap_ns, worst_share_error_percent
from bench.host import descriptors, resident_mib
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import Client, Laboratory, Run
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from edgeshare.v1.allocations_pb2 import Allocation
from simgpu.stage.programs import Program
from tests.kit.manager.acts import ACTS
from tests.kit.manager.attacker import ATTACKERS

HONEST = (Client("sixty", "1000", 60), Client("twenty", "1000", 20))
SHARES = {"sixty": 75.0, "twenty": 25.0}
MANY = tuple(f"many-{number}" for number in range(20))
"""Allocations of one percent."""

ATTACKS = {name: (name, ATTACKERS[:1]) for name in ACTS} | {
    "long drains of 10": ("long drains", MANY[:10]),
    "floods of 5": ("a flood", MANY[:5]),
    "floods of 20": ("a flood", MANY),
    "floods of 20 over 16 connections each": ("a flood over 16 connections", MANY),
    "floods of 10 over 64 connections each": ("a flood over 64 connections", MANY[:10]),
}
"""What is done, and by which allocations."""

SETTLE_NS = NS_PER_S
STEP_NS = NS_PER_S // 10
ASK_S = 0.1
BACK_S = 60.0
"""So long what an attack took may be coming back."""

SHARE_TARGET = Target(1)
WAIT_TARGET = Target(100)
CPU_TARGET = Target(30)
STATUS_TARGET = Target(1000)
DESCRIPTORS_TARGET = Target(8)
MEMORY_TARGET = Target(24)
"""MiB: the manager's own pools settle at some."""


@dataclass(frozen=True)
class Suffered:
    """What a run beside an attack was like."""

    run: Run
    status_ms: float
    """The longest that the manager took to say its status."""
    descriptors_left: int
    """That it had not before, once what the attack had opened was closed."""


def measurements(effort: Effort) -> list[Measurement]:
    """One for each attack, all on one machine; and what they cost the manager's memory all together."""
    attacks = [Measurement(f"beside {name}", partial(measure, effort, name)) for name in ATTACKS]
    memory = Memory()
    return [
        Measurement("the manager before attacks", memory.before),
        *attacks,
        Measurement("the manager after attacks", memory.after),
    ]


def laboratory(bench: Bench) -> Laboratory:
    """A machine of its own: its manager has met worse."""
    return bench.laboratory(SCHEDULINGS[1], purpose="attacks")


class Memory:
    """The manager's, before and after all of it."""

    def __init__(self) -> None:
        self._mib = 0.0

    def before(self, bench: Bench) -> list[Row]:
        """Once it has had two clients, which it needs some for."""
        laboratory(bench).run(HONEST, SETTLE_NS / NS_PER_S)
        self._mib = resident_mib(laboratory(bench).stage.manager.pid)
        return []

    def after(self, bench: Bench) -> list[Row]:
        """What it is more by."""
        grown = resident_mib(laboratory(bench).stage.manager.pid) - self._mib
        return [Row("manager's memory after attacks, more than before", "MiB", [grown], target=MEMORY_TARGET)]


def measure(effort: Effort, name: str, bench: Bench) -> list[Row]:
    """The honest clients' shares and waits, and the manager's processor time and answers, beside one attack."""
    suffered = [beside(laboratory(bench), name, effort.attack_s) for _ in range(effort.attack_runs)]
    settings: dict[str, str | float] = {"attack": name}
    runs = [each.run for each in suffered]
    figures = (
        ("share error beside an attack", "points", map(share_error_percent, runs), SHARE_TARGET),
        ("longest wait beside an attack", "ms", map(longest_wait_ms, runs), WAIT_TARGET),
        (
            "manager's processor time beside an attack",
            "% of a core",
            (run.manager_cpu_percent for run in runs),
            CPU_TARGET,
        ),
        ("status answered beside an attack, the latest", "ms", (each.status_ms for each in suffered), STATUS_TARGET),
        ("descriptors left open after an attack", "", (each.descriptors_left for each in suffered), DESCRIPTORS_TARGET),
    )
    return [Row(figure, unit, list(values), settings, target=target) for figure, unit, values, target in figures]


def beside(laboratory: Laboratory, name: str, seconds: float) -> Suffered:
    """The honest clients and an attack that begins with them."""
    act, ids = ATTACKS[name]
    before = descriptors(laboratory.stage.manager.pid)
    answered_ms: list[float] = []
    with ExitStack() as stack:
        # With more of one percent than there is room for beside the honest ones nothing would be measured.
        hold(laboratory, set(ids if ids[0] in MANY else ATTACKERS), stack)
        argv = [sys.executable, "-m", "bench.node.hostile_clients", str(laboratory.stage.runtime_dir), act, *ids]

        def attacked(programs: dict[str, Program], begin_ns: int) -> None:
            with laboratory.started("hostile", argv, {}) as hostile:
                while time.monotonic_ns() < begin_ns + seconds * NS_PER_S:
                    answered_ms.append(status_ms(laboratory))
                    # Now and then, as people look: asked without a pause it would be one more attack.
                    time.sleep(ASK_S)
                hostile.check()

        run = laboratory.run(HONEST, seconds, attacked)
    return Suffered(run, max(answered_ms), until_back(laboratory, before))


def hold(laboratory: Laboratory, ids: set[str], stack: ExitStack) -> None:
    """Allocations of those who mean no good."""
    device = laboratory.stage.machine.gpus()[0].uuid
    for each in sorted(ids):
        wanted = Allocation(id=each, device_ids=[device], request_percent=1, memory_mib=100)
        answers = laboratory.stage.client.hold(wanted, wait_for_manager=False)
        next(answers)
        stack.callback(answers.close)


def status_ms(laboratory: Laboratory) -> float:
    """How long the manager takes to answer."""
    begin_ns = time.monotonic_ns()
    laboratory.stage.client.status()
    return (time.monotonic_ns() - begin_ns) / NS_PER_MS


def share_error_percent(run: Run) -> float:
    """Over all that is judged, of what these executed: who has gone past its hook has what the driver gives."""
    begin_ns = run.begin_ns + SETTLE_NS
    window_ns = (run.end_ns - begin_ns) // STEP_NS * STEP_NS
    honest = [each for each in run.intervals if each.name in SHARES]
    return worst_share_error_percent(
        honest, SHARES, begin_ns, run.end_ns, window_ns=window_ns, step_ns=STEP_NS, of_executed=True
    )


def longest_wait_ms(run: Run) -> float:
    """Of either."""
    begin_ns = run.begin_ns + SETTLE_NS
    return max(longest_gap_ns(run.intervals, name, begin_ns, run.end_ns) for name in SHARES) / NS_PER_MS


def until_back(laboratory: Laboratory, before: int) -> int:
    """How many more than before it has open, when that is none, or it has had time enough."""
    deadline_s = time.monotonic() + BACK_S
    while (left := descriptors(laboratory.stage.manager.pid) - before) > 0 and time.monotonic() < deadline_s:
        # Nobody is told when another process closes one.
        time.sleep(ASK_S)
    return max(left, 0)
