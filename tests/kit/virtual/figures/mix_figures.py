"""The mixes on which ``tests/sim`` simulates the rule, run by the hook, the driver and the manager: what programs that
leave gaps have of the GPU beside each other and beside those that leave none.

``python -m tests.kit.virtual.figures.mix_figures`` records all figures anew; that takes a quarter of
an hour.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from edgeshare.contract.units import NS_PER_MS
from tests.kit.sim.device import gate_figures
from tests.kit.sim.device.figure import Figure, Figures
from tests.kit.sim.device.gate_figures import Row
from tests.kit.sim.device.mixes import MIXES, RANDOM, Mix
from tests.kit.sim.device.simulated_device import Outcome
from tests.kit.sim.device.simulated_device import Program as Kind
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Program
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.command import Command
from tests.kit.virtual.world import World
from tests.kit.virtual.worlds import Worlds

FILE = Path(__file__).with_name("mix_figures.json")
RECORDS = "python -m tests.kit.virtual.figures.mix_figures"

SETTLE_MS, MEASURE_MS = 2500, 10_500
"""Longer than the window of what is told, so that waits before the programs were let in are told no more."""
BARE_SETTLE_MS, BARE_MEASURE_MS = 500, 3000

Run = Callable[[Case], Report]


def program(kind: Kind) -> Program:
    """As steps of a thread."""
    if not kind.batch:
        return step_programs.burn(kind.kernel_us)
    if kind.period_us:
        return step_programs.periodic(kind.kernel_us, kind.batch, kind.period_us)
    return step_programs.think(kind.kernel_us, kind.batch, kind.think_us)


def case(mix: Mix, pace: str) -> Case:
    """A mix on a device that divides its time."""
    clients = tuple(
        Client(program=program(kind), percent=percent) for kind, percent in zip(mix.programs, mix.percents, strict=True)
    )
    return Case(clients=clients, pace=pace, scheduling="timeslice", settle_ms=SETTLE_MS, measure_ms=MEASURE_MS)


def bare(of: Case) -> Case:
    """The same with neither hook nor manager."""
    shorter = {"settle_ms": BARE_SETTLE_MS, "measure_ms": BARE_MEASURE_MS}
    return of.model_copy(update={"hooked": False, **shorter})


class Measured:
    """Rows of figures at one pace; what each program has alone is found once."""

    def __init__(self, pace: str = "plain") -> None:
        self._pace = pace
        self._alone: dict[Kind, float] = {}

    def row(self, run: Run, mix: Mix, *, seen: bool = True) -> Row:
        """Runs a mix, by turns where nobody sees how busy the device is, and the same bare."""
        whole = case(mix, self._pace)
        alone = tuple(self._alone_of(run, kind) for kind in mix.programs)
        report = run(whole.model_copy(update={"seen": seen}))
        told = report.steps[-1]["longest_wait_ns"]
        # What is told is of all waits: of one that never asks for more than its guarantee each began within it.
        waits_ms = (
            told[name] / NS_PER_MS if part <= percent / 100 else 0.0
            for name, part, percent in zip(whole.names, alone, mix.percents, strict=True)
        )
        without = run(bare(whole))
        return Row(mix, Outcome(_used(report), tuple(waits_ms), 0), Outcome(_used(without), (), 0), alone)

    def _alone_of(self, run: Run, kind: Kind) -> float:
        if kind not in self._alone:
            (self._alone[kind],) = _used(run(bare(case(Mix((kind,), (100,)), self._pace))))
        return self._alone[kind]


def _used(report: Report) -> tuple[float, ...]:
    return tuple(report.busy_percent(name) / 100 for name in report.case.names)


def beside_turns(found: Sequence[Row], by_turns: Sequence[Row]) -> Figures:
    """What each has over the same by turns, as far as it is owed that; and the least of those that never pause."""
    parts, saturating = [], []
    for row, turns in zip(found, by_turns, strict=True):
        each = zip(row.got.used, turns.got.used, row.alone, row.mix.percents, row.mix.saturating, strict=True)
        for used, before, alone, percent, never_pauses in each:
            parts.append(used / min(before, alone, percent / 100))
            if never_pauses:
                saturating.append(100 * used / percent)
    return {
        "clients that have 0.95 of what is owed them and they have by turns, part": Figure(
            sum(part >= 0.95 for part in parts) / len(parts), 1
        ),
        "the least of them": Figure(min(parts), 0.95),
        "saturating: least part of the request": Figure(min(saturating), 0.95),
    }


Maps = Callable[[Callable[[Run, Mix], Row], Iterable[Mix]], Iterable[Row]]
"""Runs mixes, as many at a time as it likes."""


def measured(maps: Maps, mixes: Sequence[Mix]) -> Figures:
    """Figures of mixes where a switch is cheap."""
    return gate_figures.grid(list(maps(Measured().row, mixes)))


def held_against_turns(maps: Maps, mixes: Sequence[Mix], pace: str) -> Figures:
    """The same at a pace, and what each has over turns."""
    at_pace = Measured(pace)
    found = list(maps(at_pace.row, mixes))
    by_turns = list(maps(lambda run, mix: at_pace.row(run, mix, seen=False), mixes))
    return gate_figures.grid(found) | beside_turns(found, by_turns)


def turns_alone(maps: Maps, mixes: Sequence[Mix]) -> Figures:
    """What the rule is held against: by turns alone. There is no target for it."""
    at_pace = Measured()
    found = gate_figures.grid(list(maps(lambda run, mix: at_pace.row(run, mix, seen=False), mixes)))
    return {name: replace(figure, target=figure.value) for name, figure in found.items()}


PARTS: dict[str, Callable[[Maps], Figures]] = {
    "part of the grid": lambda maps: measured(maps, MIXES[3::60]),
    "part of the random mixes": lambda maps: measured(maps, RANDOM[:12]),
}
"""What ``make test`` runs."""
WHOLE: dict[str, Callable[[Maps], Figures]] = {
    "grid": lambda maps: measured(maps, MIXES),
    "random mixes": lambda maps: measured(maps, RANDOM),
    "tenth of the grid, by turns": lambda maps: turns_alone(maps, MIXES[3::10]),
    "tenth of the grid, plain": lambda maps: held_against_turns(maps, MIXES[3::10], "plain"),
    "tenth of the grid, workstation": lambda maps: held_against_turns(maps, MIXES[3::10], "workstation"),
    "tenth of the grid, jetson": lambda maps: held_against_turns(maps, MIXES[3::10], "jetson"),
}
"""What ``make soak`` runs as well."""


def in_one(world: World) -> Maps:
    """One after the other."""
    return lambda row, mixes: [row(world.run, mix) for mix in mixes]


@click.command(cls=Command)
@click.argument("group", required=False, type=click.Choice([*PARTS, *WHOLE]))
def main(group: str | None) -> None:
    """Records the figures of all groups of mixes anew, or those of one."""
    recorded = gate_figures.recorded(FILE) if FILE.exists() else {}
    worlds = Worlds()
    for name, figures in (PARTS | WHOLE).items():
        if group in (None, name):
            made = figures(lambda row, mixes: worlds.map(lambda world, mix: row(world.run, mix), mixes))
            recorded[name] = gate_figures.told(made)
            gate_figures.write(recorded, FILE)
            click.echo(name)
            for each, figure in made.items():
                click.echo(f"  {figure.value:.4f} ({figure.target}) {each}")
    worlds.close()


if __name__ == "__main__":
    main()
