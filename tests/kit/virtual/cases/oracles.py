"""What must hold of any program under edgeshare, however odd: each flaw is one line.

A program is held against the same one bare: what a program cannot use alone nobody owes it. One that has what would
be due to a program that could use the whole GPU is not run bare.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from edgeshare.contract.units import MIB, NS_PER_MS
from sharemgr.node.turns.settings import Settings
from simgpu.create import CONTEXT_OVERHEAD_MIB
from tests.kit.virtual.cases.case import Case, measured_ms
from tests.kit.virtual.cases.report import DiedError, Report

ALONE = 0.95
"""Of what it uses bare a program that is alone has at least so much with the hook."""

WINDOW_MS = Settings().window_ns * 11 // (10 * NS_PER_MS)
"""The rule's window, in which what is told of the last one is whole."""

BESIDE = 0.9
"""Of its percent of what it can use alone a client has at least so much beside rivals."""

MORE_GPU_TIME, LESS_GPU_TIME = "more GPU time", "less GPU time"
FALLS_SHORT = frozenset({"alone", "beside", LESS_GPU_TIME})
"""Kinds of flaws that some programs have; none has another."""
GPU_TIME_PERCENT = 2
REPORTED_WITHIN_NS = 250_000_000
"""After its end: a hook that keeps its slice reports each 100 ms, and of a batch only when all of it has run."""

SETTLED_NS = 5_000_000
"""What is smaller, in GPU time of the measured time, is one kernel more or less."""


@dataclass(frozen=True)
class Flaw:
    """What did not hold."""

    kind: str
    what: str


def bare(case: Case, index: int) -> Case:
    """The same program alone, with neither hook nor manager, where nobody asks what it requests: all that run one
    program are one case."""
    client = case.clients[index].model_copy(update={"delay_ms": 0, "percent": 100, "limit": 100})
    # Alone it waits for nobody else's submissions.
    needed_ms = min(case.measure_ms, measured_ms(client.program))
    changes = {"hooked": False, "faults": (), "lost_wake": 0, "measure_ms": needed_ms}
    return case.model_copy(update={"clients": (client,), "settle_ms": min(case.settle_ms, needed_ms // 2), **changes})


def flaws(case: Case, run: Callable[[Case], Report], margin: float = 0) -> list[Flaw]:
    """Runs a case, and each of its programs bare; what did not hold of it, or would not if it were worse by ``margin``
    (a part of one).

    Shares hold over the rule's window. Over less, chance may have taken so much from a program with a small one: then
    a window is run.
    """
    run = cache(run)
    found = _flaws(case, run, margin)
    if case.measure_ms < WINDOW_MS and any(flaw.kind == "beside" for flaw in found):
        return _flaws(case.model_copy(update={"measure_ms": WINDOW_MS}), run, margin)
    return found


def _flaws(case: Case, run: Callable[[Case], Report], margin: float) -> list[Flaw]:
    try:
        hooked = run(case)
    except DiedError as error:
        return [Flaw("died", str(error))]
    found = memory(hooked)
    for index, name in enumerate(case.names):
        own = errors(hooked, name) + gpu_time(hooked, index, name, margin)
        # Who has its part of all that one engine can do, and nothing else wrong, need not be run bare.
        if own or case.overlap or share(hooked, 100, index, name, margin):
            try:
                alone = run(bare(case, index))
            except DiedError as error:
                found += [*own, Flaw("died", f"{name}, bare: {error}")]
                continue
            if alone.clients["c0"]["error"]:
                # A program that is wrong by itself says nothing about the hook.
                continue
            own += share(hooked, alone.busy_percent("c0"), index, name, margin)
        found += own
    return found


def errors(hooked: Report, name: str) -> list[Flaw]:
    """No call fails because of the hook."""
    outcome = hooked.clients[name]
    if not outcome["error"]:
        return []
    return [Flaw("error", f"{name}: a step of kind {outcome['error_step']} returned {outcome['error']}")]


def share(hooked: Report, could: float, index: int, name: str, margin: float) -> list[Flaw]:
    """It gets what it would use: of the percent of the GPU that it could use alone all, or its part beside rivals."""
    case = hooked.case
    got = hooked.busy_percent(name) * (1 - margin)
    percent = case.clients[index].percent
    if len(case.clients) == 1:
        due = ALONE * could * min(1.0, case.clients[index].limit / could) if could else 0
        kind = "alone"
    else:
        due = BESIDE * could * percent / 100
        kind = "beside"
    if got >= due or (due - got) * hooked.measured_ns / 100 < SETTLED_NS:
        return []
    if hooked.clients[name]["refused"]:
        # With no cap it is another program: bare, all of its allocations succeed.
        return []
    return [Flaw(kind, f"{name} used {got:.2f} % of the GPU, {due:.2f} % are due ({could:.2f} % bare)")]


def gpu_time(hooked: Report, index: int, name: str, margin: float) -> list[Flaw]:
    """What status tells of its GPU time is what was executed. Of whom too much is told is counted, not known by name:
    there is no margin."""
    error = hooked.gpu_error_percent(name)
    off_ns = hooked.gpu_error_ns(name)
    if abs(error) + (100 * margin if error < 0 else 0) <= GPU_TIME_PERCENT or -REPORTED_WITHIN_NS < off_ns < SETTLED_NS:
        return []
    kind = MORE_GPU_TIME if error > 0 else LESS_GPU_TIME
    return [Flaw(kind, f"{name}: GPU time is told {error:+.2f} % off what was executed")]


def memory(hooked: Report) -> list[Flaw]:
    """Neither books nor buffers pass the cap, but for contexts that nobody had measured before."""
    found = []
    for (name, outcome), client in zip(hooked.clients.items(), hooked.case.clients, strict=True):
        cap = client.memory_mib * MIB
        told, held = hooked.steps[-1]["memory_bytes"][name], outcome["held_bytes"]
        if told > cap + client.processes * CONTEXT_OVERHEAD_MIB * MIB:
            found.append(Flaw("memory", f"{name}: {told} bytes are counted under a cap of {cap}"))
        if held > cap:
            found.append(Flaw("memory", f"{name} holds {held} bytes under a cap of {cap}"))
    return found
