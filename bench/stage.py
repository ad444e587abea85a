"""Where things are measured: a simulated machine, its manager, and clients with and without the hook."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count

from bench.host import cpu_seconds
from edgeshare.cli.demo_plan import Interval
from edgeshare.cli.demo_programs import Program
from edgeshare.cli.demo_stage import Stage
from edgeshare.cli.run import environment, hook_library
from edgeshare.errors import Unavailable
from edgeshare.units import NS_PER_S
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from simgpu.native import BURN

LEAD_NS = NS_PER_S // 2
"""From the start of a run's first client to the moment when all begin: each is a C program."""

SPARE_S = 30
"""How much longer than its run a client would go on: it is ended, it does not end."""

END_S = 120.0
"""Longer than any program that ends by itself takes; only to end a bench that hangs."""

MEMORY_MIB = 1024


@dataclass(frozen=True)
class Saturating:
    """A client that submits kernels as fast as it is let."""

    name: str
    kernel_us: int
    percent: int | None = None
    """Its request; None: with no hook and no manager."""
    limit_percent: int = 100
    arguments: tuple[str, ...] = ()
    """More for burn."""


@dataclass(frozen=True)
class Run:
    """What a GPU executed while some clients ran."""

    begin_ns: int
    end_ns: int
    intervals: list[Interval]
    manager_cpu_s: float
    """Processor time that the manager used meanwhile."""


class Laboratory:
    """Runs clients on a stage, GPU 0 alone."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._numbers = count(1)

    def saturate(
        self,
        clients: Sequence[Saturating],
        seconds: float,
        meanwhile: Callable[[dict[str, Program], int], None] | None = None,
    ) -> Run:
        """Runs these side by side. ``meanwhile`` gets the programs and the time when they begin."""
        begin_ns = time.monotonic_ns() + LEAD_NS
        end_ns = begin_ns + round(seconds * NS_PER_S)
        cursor = self.stage.machine.cursor(0)
        with ExitStack() as stack:
            programs = {}
            for client in clients:
                arguments = ["--kernel-us", str(client.kernel_us), "--start-at-ns", str(begin_ns)]
                arguments += ["--seconds", str(seconds + SPARE_S), *client.arguments]
                programs[client.name] = stack.enter_context(
                    self.program(client.name, [str(BURN), *arguments], client.percent, client.limit_percent)
                )
            sleep_until_ns(begin_ns)
            cpu_s = cpu_seconds(self.stage.manager.pid)
            if meanwhile is not None:
                meanwhile(programs, begin_ns)
            sleep_until_ns(end_ns)
            if meanwhile is None:
                for program in programs.values():
                    program.check()
            manager_cpu_s = cpu_seconds(self.stage.manager.pid) - cpu_s
            intervals = self.intervals(cursor)
            self.stage.manager.check()
            self.stage.programs.end(list(programs.values()))
        return Run(begin_ns, end_ns, intervals, manager_cpu_s)

    def last_line(self, name: str, argv: Sequence[str], percent: int | None) -> str:
        """What a program that ends by itself prints last; raises Unavailable where it fails."""
        with self.program(name, argv, percent, 100) as program:
            status = program.status(wait_s=END_S)
            if status is None:
                raise Unavailable(f"{name} did not end within {END_S:.0f} s; its log: {program.log}")
            if status != 0:
                program.check()
            return program.log.read_text(encoding="utf-8").splitlines()[-1]

    @contextmanager
    def program(self, name: str, argv: Sequence[str], percent: int | None, limit_percent: int) -> Iterator[Program]:
        """A program on the machine, hooked where it has a request; ended on leaving."""
        more: dict[str, str] = {}
        with ExitStack() as stack:
            if percent is not None:
                allocation = Allocation(
                    id=f"bench-{next(self._numbers)}",
                    device_ids=[self.stage.machine.gpus()[0].uuid],
                    request_percent=percent,
                    limit_percent=limit_percent,
                    memory_mib=MEMORY_MIB,
                    owner=Owner(command=name),
                )
                answers = self.stage.client.hold(allocation, wait_for_manager=False)
                stack.callback(answers.close)  # type: ignore[attr-defined]  # a generator
                more = environment(self.stage.environment, next(answers), hook_library())
            program = self.stage.start(name, list(argv), more)
            stack.callback(self.stage.programs.end, [program])
            yield program

    def intervals(self, cursor: int) -> list[Interval]:
        """What GPU 0 has executed since then."""
        logged, _ = self.stage.machine.log(0, cursor)
        tags = self.stage.machine.tags()
        return [Interval(tags[entry.process], entry.begin_ns, entry.end_ns) for entry in logged]


def sleep_until_ns(time_ns: int) -> None:
    """Sleeps until a time of the monotonic clock."""
    time.sleep(max(0, time_ns - time.monotonic_ns()) / NS_PER_S)
