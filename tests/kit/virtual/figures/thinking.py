"""Programs with gaps on the host, between bursts or between kernels, beside others: rows of a figure, and how it is
measured."""

from collections.abc import Callable
from functools import cache

from tests.kit.virtual.cases.case import Case, Client, Program
from tests.kit.virtual.cases.oracles import bare
from tests.kit.virtual.cases.paces import PACES
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.cases.step_programs import burn, think

Run = Callable[[Case], Report]


def _clients(*programs: tuple[int, Program]) -> tuple[Client, ...]:
    return tuple(Client(program=program, percent=percent) for percent, program in programs)


MIXES = {
    "three of 8 x 20 us, then 100 us": _clients(*((percent, think(20, 8, 100)) for percent in (50, 30, 20))),
    "three of 4 x 5 us, then 50 us": _clients(*((percent, think(5, 4, 50)) for percent in (50, 30, 20))),
    "1 ms, then 500 us, and 50 us, then 50 us": _clients((70, think(1000, 1, 500)), (30, think(50, 1, 50))),
    "two of 4 x 100 us, then 300 us": _clients((50, think(100, 4, 300)), (50, think(100, 4, 300))),
    "8 x 20 us, then 400 us, and one that never thinks": _clients((20, think(20, 8, 400)), (80, burn(300))),
    "8 x 20 us, then 400 us, and 1 ms that never thinks": _clients((30, think(20, 8, 400)), (70, burn(1000))),
    "two of 64 x 2 us, then 20 us": _clients((50, think(2, 64, 20)), (50, think(2, 64, 20))),
    "two of 2 us that never wait": _clients((50, burn(2)), (50, burn(2))),
    "2 us that never waits, and 300 us that never waits": _clients((50, burn(2)), (50, burn(300))),
    "8 x 1 ms, then 50 ms, and 1 ms that never thinks": _clients((30, think(1000, 8, 50_000)), (70, burn(1000))),
}
ROWS = {f"{mix}, {pace}": (clients, pace) for pace in PACES for mix, clients in MIXES.items()}


def missing_percent(run: Run, row: str, seed: int) -> float:
    """Of its percent of what it can use alone the client lacks so much that lacks most."""
    clients, pace = ROWS[row]
    case = Case(clients=clients, pace=pace, scheduling="timeslice", seed=seed)
    run = cache(run)
    report = run(case)
    parts = (
        report.busy_percent(name) / (client.percent / 100 * run(bare(case, index)).busy_percent("c0"))
        for index, (name, client) in enumerate(zip(case.names, clients, strict=True))
    )
    return 100 * max(0.0, 1 - min(parts))
