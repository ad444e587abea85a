"""The cases of the README's rows of shares, on the virtual clock. Pure."""

from itertools import product
from typing import cast

from bench.measurement import SCHEDULINGS
from bench.node.shares import CASES, Case
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case as VirtualCase
from tests.kit.virtual.cases.case import Client, Program, Scheduling
from tests.kit.virtual.cases.paces import PACES

SETTLE_MS = 2000
WINDOW_S = 10
MEASURE_MS = 10_200
"""As in the bench: windows of 10 s that begin 100 ms apart."""

SMALL_MEMORY_MIB = 512
"""Of each of many clients."""


def _program(case: Case, kernel: str) -> Program:
    """What burn does with these arguments."""
    options = dict(zip(case.arguments[::2], case.arguments[1::2], strict=True))
    if ":" in kernel:
        weighed = (part.split(":") for part in kernel.split(","))
        return step_programs.mixed(*((float(us), int(weight)) for us, weight in weighed))
    if "--graph" in options:
        return step_programs.graphs(float(kernel), int(options["--graph"]))
    if "--mode" in options:
        return step_programs.wait_each(float(kernel), float(options.get("--think-us", 0)))
    return step_programs.burn(float(kernel), blocks=int(options.get("--grid", 1)))


def virtual(case: Case, scheduling: str, pace: str, seed: int) -> VirtualCase:
    """One row with one pace."""
    clients = tuple(
        Client(
            program=_program(case, client.kernels),
            percent=cast(int, client.percent),
            limit=client.limit_percent,
            memory_mib=SMALL_MEMORY_MIB,
        )
        for client in case.clients(hooked=True)
    )
    return VirtualCase(
        clients=clients,
        seed=seed,
        scheduling=cast(Scheduling, scheduling),
        pace=pace,
        settle_ms=SETTLE_MS,
        measure_ms=MEASURE_MS,
        intervals=case.by_held_time,
    )


ROWS = {
    f"{case.name}: {case.what}, {scheduling}, {pace}": (case, scheduling, pace)
    for pace, case, scheduling in product(PACES, CASES, SCHEDULINGS)
}
