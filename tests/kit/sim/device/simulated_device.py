"""Programs on one simulated device (native/), and a rule that opens their gates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import iter_unpack, pack_into
from typing import Any, Protocol, cast

from cffi import FFI

from bench.compiler import compile_program
from edgeshare.contract.units import NS_PER_MS, NS_PER_S, NS_PER_US
from sharemgr.node.turns.settings import Settings, Share

FOLDER = Path(__file__).parent / "native"
FLAGS = ("-fPIC", "-shared", "-Wl,-z,defs")
NEVER_NS = 1 << 62
PAGE, GATE = "5q", "3q"
"""``struct sim_page`` and ``struct sim_gate``."""


@dataclass(frozen=True)
class Program:
    """A closed loop: so many kernels, a wait for the result, thinking; without a batch it never waits."""

    kernel_us: float
    batch: int = 0
    think_us: float = 0
    period_us: float = 0
    """Instead of thinking: the next batch begins at a multiple of this."""
    reported: float = 1
    """What it says of its GPU time."""
    feigns: bool = False
    """Whether it says that it was idle while it does not say that it used the device."""


@dataclass(frozen=True)
class Tenant:
    """A program, and the share of its allocation."""

    program: Program
    request_percent: int
    limit_percent: int = 100
    latency: bool = False

    @property
    def share(self) -> Share:
        """As the rules take it."""
        return Share(self.request_percent, self.limit_percent, self.latency)


@dataclass(frozen=True)
class Device:
    """How the device divides its time, and for how long it is watched."""

    timeslice: bool = False
    switch_us: float = 0
    run_s: float = 12
    settle_s: float = 2
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """What came of it, in the order of the tenants."""

    used: tuple[float, ...]
    """Part of the device."""
    longest_wait_ms: tuple[float, ...]
    """At the gate, of waits that began within the guarantee."""
    wakes: int
    """How often the manager had something to do."""
    answers_ms: tuple[tuple[float, ...], ...] = ()
    """How long each batch took, from the end of thinking to the result; the first 2,048 of a program."""

    @property
    def busy(self) -> float:
        """The part of all together."""
        return sum(self.used)


class Rule(Protocol):
    """Opens gates."""

    def happened(self, event: int, index: int, now_ns: int, device: "State") -> int:
        """Does what is to be done; returns when SIM_LOOK is to happen next."""


@dataclass(frozen=True)
class State:
    """What a rule sees and changes: native/device.h's structs, one of each for a program."""

    pages: list[Any]
    gates: list[Any]
    busy_ns: Any
    """As the driver says: for how long each program has had the device and, last, any of them."""
    pages_memory: Any
    """The same structs as bytes: all of them are read, or written, in a tenth of the time that it takes by their
    fields."""
    gates_memory: Any

    def read_pages(self) -> Iterator[tuple[int, ...]]:
        """The fields of each page, in their order."""
        return iter_unpack(PAGE, self.pages_memory)

    def read_gates(self) -> Iterator[tuple[int, ...]]:
        """The fields of each gate, in their order."""
        return iter_unpack(GATE, self.gates_memory)

    def write_gates(self, fields: Sequence[int]) -> None:
        """The fields of all gates, one gate after the other."""
        pack_into(f"{len(fields)}q", self.gates_memory, 0, *fields)


class Simulator:
    """The simulator, compiled into a folder that is there. Raises Unavailable where there is no C compiler."""

    def __init__(self, folder: Path) -> None:
        self._ffi = FFI()
        self._ffi.cdef((FOLDER / "device.h").read_text(encoding="utf-8"))
        self._library: Any = self._ffi.dlopen(str(compile_program(FOLDER, folder, *FLAGS)))

    def run(self, tenants: Sequence[Tenant], device: Device, rule: Rule | None) -> Outcome:
        """Runs programs; without a rule they have no gates."""
        ffi, count = self._ffi, len(tenants)
        config: Any = ffi.new("struct sim_config *", _config(device, rule is not None))
        programs = ffi.new("struct sim_program[]", [_program(tenant.program) for tenant in tenants])
        requests = ffi.new("int64_t[]", [tenant.request_percent for tenant in tenants])
        outcomes: Any = ffi.new("struct sim_outcome[]", count)
        pages, gates = ffi.new("struct sim_page[]", count), ffi.new("struct sim_gate[]", count)
        state = State(list(pages), list(gates), ffi.new("int64_t[]", count + 1), ffi.buffer(pages), ffi.buffer(gates))
        errors: list[BaseException] = []

        def happened(event: int, index: int, now_ns: int) -> int:
            return rule.happened(event, index, now_ns, state) if rule is not None and not errors else NEVER_NS

        def failed(_type: object, error: BaseException, _traceback: object) -> None:
            errors.append(error)

        decide = ffi.callback("int64_t(int, int, int64_t)", happened, onerror=failed, error=NEVER_NS)
        wakes = self._library.sim_run(config, programs, requests, count, decide, pages, gates, outcomes, state.busy_ns)
        if errors:
            raise errors[0]
        assert wakes >= 0, f"{count} programs are too many"
        length_ns = config.run_ns - config.settle_ns
        return Outcome(
            used=tuple(outcome.executed_ns / length_ns for outcome in outcomes),
            longest_wait_ms=tuple(outcome.longest_wait_ns / NS_PER_MS for outcome in outcomes),
            wakes=wakes,
            answers_ms=tuple(
                tuple(ns / NS_PER_MS for ns in cast(list[int], ffi.unpack(outcome.answers_ns, outcome.answers)))
                for outcome in outcomes
            ),
        )


def _config(device: Device, gated: bool) -> dict[str, int]:
    return {
        "seed": device.seed,
        "run_ns": int(device.run_s * NS_PER_S),
        "settle_ns": int(device.settle_s * NS_PER_S),
        "gated": gated,
        "timeslice": device.timeslice,
        "switch_ns": int(device.switch_us * NS_PER_US),
        "anticipation_ns": Settings().anticipation_ns,
    }


def _program(program: Program) -> dict[str, int]:
    return {
        "kernel_ns": int(program.kernel_us * NS_PER_US),
        "batch": program.batch,
        "think_ns": int(program.think_us * NS_PER_US),
        "period_ns": int(program.period_us * NS_PER_US),
        "reported_permille": int(1000 * program.reported),
        "feigns": program.feigns,
    }
