"""Where things are measured: a simulated machine, its manager, and clients with and without the hook."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from bench.host import cpu_seconds
from edgeshare.cli.run import environment, hook_library
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.units import MIB, NS_PER_S
from edgeshare.v1.allocations_pb2 import SHARE_CLASS_BATCH, SHARE_CLASS_LATENCY, Allocation, Owner
from simgpu.native import BURN
from simgpu.stage.executed import Interval
from simgpu.stage.programs import Program, begin_together
from simgpu.stage.stage import Stage

SPARE_S = 30
"""How much longer than its run a client would go on: it is ended, it does not end."""

END_S = 120.0
"""Longer than any program that ends by itself takes; only to end a bench that hangs."""

MARKER_NS = 1_000
"""What recording an event is reckoned to take of a GPU's time: it is free on a simulated one. The hook reckons with as
much (cuda_hook/src/markers/batches.h)."""

MEMORY_MIB = 1024
"""Cap on a client's memory, where that many fit."""


@dataclass(frozen=True)
class Client:
    """A program that submits kernels; as fast as it is let, unless its arguments say otherwise."""

    name: str
    kernels: str
    """Their lengths, as burn's --kernel-us has them."""
    percent: int | None = None
    """Its request; None: with no hook and no manager."""
    limit_percent: int = 100
    arguments: tuple[str, ...] = ()
    """More for burn."""
    latency: bool = False
    gpu: int = 0

    def argv(self, seconds: float) -> list[str]:
        """burn, to go on for so long."""
        return [str(BURN), "--kernel-us", self.kernels, "--seconds", str(seconds), "--json", *self.arguments]

    def argv_told(self, seconds: float) -> list[str]:
        """burn, to go on for so long from when it is told to begin."""
        return [*self.argv(seconds), "--start-when-told"]


def pausing(count: int, think_us: int) -> tuple[str, ...]:
    """burn's arguments for a program that submits so many kernels, waits for them, and pauses."""
    return ("--mode", "think", "--sync-every", str(count), "--think-us", str(think_us))


@dataclass(frozen=True)
class Run:
    """What the GPUs executed while some clients ran."""

    begin_ns: int
    end_ns: int
    executed: tuple[list[Interval], ...]
    """For each GPU, in the order in which it ran them."""
    manager_cpu_s: float
    """Processor time that the manager used meanwhile."""
    markers: int
    """Events that the clients recorded, and so their hooks: burn itself records none."""

    @property
    def markers_percent(self) -> float:
        """Of the time of the first GPU, at what a marker is reckoned to cost."""
        return 100 * self.markers * MARKER_NS / (self.end_ns - self.begin_ns)

    @property
    def intervals(self) -> list[Interval]:
        """What the first GPU executed."""
        return self.executed[0]

    @property
    def manager_cpu_percent(self) -> float:
        """Of one core."""
        return 100 * self.manager_cpu_s * NS_PER_S / (self.end_ns - self.begin_ns)


class Laboratory:
    """Runs clients on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._numbers = count(1)

    def run(
        self,
        clients: Sequence[Client],
        seconds: float,
        meanwhile: Callable[[dict[str, Program], int], None] | None = None,
    ) -> Run:
        """Runs these side by side. ``meanwhile`` gets the programs and the time when they begin."""
        machine = self.stage.machine
        cursors = [machine.cursor(gpu) for gpu in range(machine.gpu_count)]
        with ExitStack() as stack:
            programs = {
                client.name: stack.enter_context(self.client(client, client.argv_told(seconds + SPARE_S), len(clients)))
                for client in clients
            }
            begin_ns = begin_together(list(programs.values()))
            end_ns = begin_ns + round(seconds * NS_PER_S)
            sleep_until_ns(begin_ns)
            cpu_s = cpu_seconds(self.stage.manager.pid)
            if meanwhile is not None:
                meanwhile(programs, begin_ns)
            sleep_until_ns(end_ns)
            if meanwhile is None:
                for program in programs.values():
                    program.check()
            manager_cpu_s = cpu_seconds(self.stage.manager.pid) - cpu_s
            markers = self.markers(set(programs))
            self.stage.manager.check()
            # A log as long as a run is written over while it is read, unless nothing runs any more.
            self.stage.programs.end(list(programs.values()))
            executed = tuple(self.executed(gpu, cursor) for gpu, cursor in enumerate(cursors))
        return Run(begin_ns, end_ns, executed, manager_cpu_s, markers)

    def lines(self, name: str, argv: Sequence[str], percent: int | None) -> list[str]:
        """What a program that ends by itself prints; raises Unavailable where it fails."""
        with self.program(name, argv, self.allocation(name, percent) if percent else None) as program:
            return lines(program)

    @contextmanager
    def client(self, client: Client, argv: Sequence[str], clients: int = 1) -> Iterator[Program]:
        """A program on the machine, hooked where it has a request, one of so many; ended on leaving."""
        allocation = None
        if client.percent is not None:
            allocation = self.allocation(
                client.name, client.percent, client.limit_percent, client.latency, client.gpu, clients
            )
        with self.program(client.name, argv, allocation) as program:
            yield program

    def allocation(
        self,
        name: str,
        percent: int,
        limit_percent: int = 100,
        latency: bool = False,
        gpu: int = 0,
        clients: int = 1,
    ) -> Allocation:
        """A part of a GPU, one of so many on the machine."""
        device = self.stage.machine.gpus()[gpu]
        return Allocation(
            id=f"bench-{next(self._numbers)}",
            device_ids=[device.uuid],
            request_percent=percent,
            limit_percent=limit_percent,
            share_class=SHARE_CLASS_LATENCY if latency else SHARE_CLASS_BATCH,
            memory_mib=min(MEMORY_MIB, device.memory_bytes // MIB // clients),
            owner=Owner(command=name),
        )

    @contextmanager
    def program(self, name: str, argv: Sequence[str], allocation: Allocation | None) -> Iterator[Program]:
        """A program on the machine, hooked where it has an allocation; ended on leaving."""
        with ExitStack() as stack:
            more = stack.enter_context(self.held(allocation)) if allocation is not None else {}
            yield stack.enter_context(self.started(name, argv, more))

    @contextmanager
    def started(self, name: str, argv: Sequence[str], more: Mapping[str, str]) -> Iterator[Program]:
        """A program on the machine, with more environment; ended on leaving."""
        program = self.stage.start(name, list(argv), more)
        try:
            yield program
        finally:
            self.stage.programs.end([program])

    @contextmanager
    def held(self, allocation: Allocation) -> Iterator[dict[str, str]]:
        """An allocation at the manager, and the variables of a program that is its client."""
        answers = self.stage.client.hold(allocation, wait_for_manager=False)
        try:
            yield environment(self.stage.environment, next(answers), hook_library())
        finally:
            answers.close()

    def markers(self, names: set[str]) -> int:
        """Events that live programs of these names have recorded."""
        live = (each for each in self.stage.machine.processes() if each.alive and each.tag in names)
        return sum(sum(process.events) for process in live)

    def executed(self, gpu: int, cursor: int) -> list[Interval]:
        """What a GPU has executed since then."""
        logged, _ = self.stage.machine.log(gpu, cursor)
        tags = self.stage.machine.tags()
        return [Interval(tags[entry.process], entry.begin_ns, entry.end_ns) for entry in logged]


def lines(program: Program) -> list[str]:
    """What a program prints that ends by itself; raises Unavailable where it does not, or fails."""
    status = program.status(wait_s=END_S)
    if status is None:
        raise Unavailable(f"{program.name} did not end within {END_S:.0f} s; its log: {program.log}")
    if status != 0:
        program.check()
    return program.log.read_text(encoding="utf-8").splitlines()


def result(program: Program) -> Any:
    """The JSON that a program prints last, once it has ended by itself. Raises as lines does."""
    return json.loads(lines(program)[-1])


def sleep_until_ns(time_ns: int) -> None:
    """Sleeps until a time of the monotonic clock."""
    time.sleep(max(0, time_ns - time.monotonic_ns()) / NS_PER_S)
