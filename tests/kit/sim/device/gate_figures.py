"""What the rule of the gates is judged by: figures of the cases and of the grid, their targets, and what was recorded.

``python -m tests.kit.sim.device.gate_figures [GROUP]`` records all of them anew, or those of one group; all take some
twenty minutes.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from bench.figures import percentile
from edgeshare.contract.units import NS_PER_MS, NS_PER_US
from sharemgr.node.turns.gate import Rule as Constants
from tests.kit.sim.device.figure import Figure, Figures, Recorded
from tests.kit.sim.device.mixes import CASES, KINDS, MIXES, PART, Mix
from tests.kit.sim.device.rules_on_device import ByGates, ByTurns
from tests.kit.sim.device.simulated_device import Device, Outcome, Program, Rule, Simulator, Tenant

FILE = Path(__file__).with_name("gate_figures.json")
SHORT = Device(run_s=8)
"""What `make test` runs of the grid; the whole is run for longer."""
LONG = Device(run_s=12)
LIAR_S = 62
"""Twice as long as turns last that somebody's lie brought about."""

Makes = Callable[[Sequence[Tenant], Device], Rule]


def by_gates(tenants: Sequence[Tenant], device: Device) -> Rule:
    """The rule that is judged."""
    return ByGates(tenants, switch_ns=int(device.switch_us * NS_PER_US))


def by_turns(tenants: Sequence[Tenant], device: Device) -> Rule:
    """What it is held against."""
    return ByTurns(tenants, 0, int(device.switch_us * NS_PER_US))


def cases(simulator: Simulator, makes: Makes = by_gates) -> Figures:
    """Percents of the device, in each of the cases."""
    figures: Figures = {}
    for name, (tenants, targets) in CASES.items():
        used = simulator.run(tenants, LONG, makes(tenants, LONG)).used
        for tenant, part, target in zip(tenants, used, targets, strict=True):
            figures[f"{name}: {tenant.request_percent} %, {len(figures)}"] = Figure(100 * part, target)
    return figures


@dataclass(frozen=True)
class Row:
    """A mix, what came of it, what comes of it with no gates, and what each has alone."""

    mix: Mix
    got: Outcome
    bare: Outcome
    alone: tuple[float, ...]

    @property
    def floors(self) -> list[float]:
        """used / (r d) of each."""
        return [
            used / (alone * percent / 100)
            for used, alone, percent in zip(self.got.used, self.alone, self.mix.percents, strict=True)
        ]

    @property
    def met(self) -> float:
        """The least of used / min(d, r)."""
        pairs = zip(self.got.used, self.alone, self.mix.percents, strict=True)
        return min(1.0, *(used / min(alone, percent / 100) for used, alone, percent in pairs))

    @property
    def kept(self) -> float:
        """The least of what each has of what it has with no gates."""
        return min(used / bare for used, bare in zip(self.got.used, self.bare.used, strict=True))

    @property
    def error(self) -> float:
        """The largest difference between a share and the request, in points."""
        pairs = zip(self.got.used, self.mix.percents, strict=True)
        return max(abs(100 * used / self.got.busy - percent) for used, percent in pairs)

    @property
    def wait_ms(self) -> float:
        """The longest at the gate of one that pauses and is within its guarantee, but for the kernel that runs."""
        pairs = zip(self.got.longest_wait_ms, self.mix.saturating, strict=True)
        return max(0.0, *(wait - self.mix.longest_kernel_ms for wait, saturating in pairs if not saturating), 0.0)


@cache
def run(simulator: Simulator, tenants: tuple[Tenant, ...], device: Device, makes: Makes | None) -> Outcome:
    """By that rule, or with no gates; once, also where several figures are of it."""
    return simulator.run(tenants, device, None if makes is None else makes(tenants, device))


def rows(simulator: Simulator, mixes: Sequence[Mix], device: Device, makes: Makes = by_gates) -> list[Row]:
    """Runs mixes."""
    alone = {kind: run(simulator, (Tenant(kind, 100),), device, None).used[0] for kind in KINDS.values()}
    found = []
    for mix in mixes:
        got, bare = (run(simulator, mix.tenants, device, rule) for rule in (makes, None))
        found.append(Row(mix, got, bare, tuple(alone[program] for program in mix.programs)))
    return found


def by_gates_of(rule: Constants) -> Makes:
    """By gates, with these constants."""
    return lambda tenants, device: ByGates(tenants, rule, switch_ns=int(device.switch_us * NS_PER_US))


OTHERS: dict[str, Makes] = {
    "turns": by_turns,
    **{
        name: by_gates_of(rule)
        for name, rule in {
            "kappa of 1": Constants(kappa=1),
            "kappa of 99": Constants(kappa=99),
            "for a lack of anything": Constants(worth=0),
            "for anything, with a kappa of 99": Constants(kappa=99, worth=0),
            "for a lack of three tenths": Constants(worth=0.3),
            "soon forgiven": Constants(most_lag_ns=10 * NS_PER_MS),
        }.items()
    },
}
"""Rules that are the best of all for some mix, and for others far from it; having no gates is one more."""


def against_the_best(simulator: Simulator, mixes: Sequence[Mix], device: Device) -> Figures:
    """What the rule reaches in a mix, of what the best of all rules for that mix does."""
    parts = []
    for row in rows(simulator, mixes, device):
        others = [run(simulator, row.mix.tenants, device, makes) for makes in OTHERS.values()]
        best = max(replace(row, got=got).met for got in (row.got, row.bare, *others))
        parts.append(row.met / best if best else 1.0)
    return {"used / min(d, r), of the best that any rule reaches, mean": Figure(sum(parts) / len(parts), 0.94)}


def grid(found: Sequence[Row]) -> Figures:
    """Figures of a grid."""
    floors = [floor for row in found for floor in row.floors]
    light = [row.kept for row in found if sum(row.alone) < 0.9]
    full = [row.error for row in found if all(row.mix.saturating)]
    throughput = [min(1.0, row.got.busy / row.bare.busy) for row in found]
    return {
        "clients that use 0.95 r d, part": Figure(sum(floor >= 0.95 for floor in floors) / len(floors), 0.95),
        "used / (r d), least": Figure(min(floors), 0.5),
        "used / min(d, r), mean": Figure(sum(row.met for row in found) / len(found), 0.79),
        "throughput over no gates, mean": Figure(sum(throughput) / len(throughput), 0.92),
        "light loads that keep 0.9 of what they have with no gates, part": Figure(
            sum(kept >= 0.9 for kept in light) / len(light) if light else 1, 0.9
        ),
        "saturating: error, points": Figure(max(full, default=0), 0.5, most=True),
        "longest wait within the guarantee, 95 of 100 mixes, ms": Figure(
            percentile([row.wait_ms for row in found], 95), 5, most=True
        ),
    }


def switches(simulator: Simulator, makes: Makes = by_gates, switches_us: Sequence[int] = (0, 250)) -> Figures:
    """Where switches cost: what saturating clients have of their requests."""
    figures = {}
    for switch_us in switches_us:
        device = replace(LONG, timeslice=True, switch_us=switch_us)
        parts = []
        for mix in PART[5::8]:
            used = simulator.run(mix.tenants, device, makes(mix.tenants, device)).used
            found = zip(used, mix.percents, mix.saturating, strict=True)
            parts += [100 * part / percent for part, percent, saturating in found if saturating]
        figures[f"switches of {switch_us} us: least part of its request of a saturating client"] = Figure(
            min(parts), 0.95
        )
    return figures


LIARS: dict[str, dict[str, Any]] = {
    "a twentieth": {"reported": 0.05},
    "nothing": {"reported": 0.0},
    "half": {"reported": 0.5},
    "a twentieth, and that it thought": {"reported": 0.05, "feigns": True},
    "that it drains all the time": {"feigns": True},
    "nothing wrong, in bursts of 3 ms": {"batch": 3, "think_us": 50},
}


def lies(simulator: Simulator, sees_programs: bool = False) -> Figures:
    """What one that keeps the device busy has by what it says, over what it has when it says how it is."""
    honest, device, figures = Program(1000), replace(SHORT, run_s=LIAR_S), {}
    for rival in ("1 ms kernels", "8 x 20 us, 0.1 ms"):
        used = [
            simulator.run(tenants, device, ByGates(tenants, sees_programs=sees_programs)).used[0]
            for program in (honest, *(replace(honest, **lie) for lie in LIARS.values()))
            for tenants in [[Tenant(program, 50), Tenant(KINDS[rival], 50)]]
        ]
        for lie, part in zip(LIARS, used[1:], strict=True):
            figures[f"says {lie}, beside {rival}: gain"] = Figure(part / used[0], 1.05, most=True)
    return figures


def limits(simulator: Simulator) -> Figures:
    """By how much a limit is passed, or missed by one that keeps the device busy, beside idle time: points."""
    figures = {}
    for name, program in KINDS.items():
        tenants = [Tenant(program, 10, 15), Tenant(KINDS["8 x 20 us, 5 ms"], 10)]
        over = 100 * simulator.run(tenants, LONG, by_gates(tenants, LONG)).used[0] - 15
        error = max(0.0, over) if program.batch else abs(over)
        figures[f"limit of 15 %, {name}: error, points"] = Figure(error, 1, most=True)
    return figures


def recorded(file: Path = FILE) -> dict[str, Recorded]:
    """What figures of each group were."""
    return dict(json.loads(file.read_text(encoding="utf-8")))


def hold(
    group: str, figures: Figures, file: Path = FILE, records: str = "python -m tests.kit.sim.device.gate_figures"
) -> None:
    """Fails where a figure is worse than it was; says which targets are missed, as they were when it was recorded."""
    before = recorded(file)[group]
    assert set(figures) == set(before), f"record the figures anew: {records}"
    worse = {name: each.value for name, each in figures.items() if not each.as_good_as(before[name]["value"])}
    assert not worse, f"worse than recorded by more than a tenth, or than the target that was met: {worse}"
    missed = [f"{name}: {each.value:.3f}, not {each.target}" for name, each in figures.items() if not each.met]
    if missed:
        pytest.xfail("; ".join(missed))


def told(figures: Figures) -> Recorded:
    """As they are recorded."""
    return {name: {"value": round(each.value, 4), "target": round(each.target, 4)} for name, each in figures.items()}


def write(groups: Mapping[str, Recorded], file: Path = FILE) -> None:
    """Replaces what was recorded."""
    file.write_text(json.dumps(groups, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


PARTS: dict[str, Callable[[Simulator], Figures]] = {
    "cases": cases,
    "part of the grid": lambda simulator: grid(rows(simulator, PART, SHORT)),
    "part of the grid, the best of rules": lambda simulator: against_the_best(simulator, PART[::16], SHORT),
    "switches": switches,
    "limits": limits,
    "lies": lies,
    "lies, where the driver says what each uses": lambda simulator: lies(simulator, sees_programs=True),
}
"""What ``make test`` runs."""
WHOLE: dict[str, Callable[[Simulator], Figures]] = {
    "whole grid": lambda simulator: grid(rows(simulator, MIXES, LONG)),
    "switches, shorter ones": lambda simulator: switches(simulator, switches_us=(30, 100)),
    "whole grid, the best of rules": lambda simulator: against_the_best(simulator, MIXES, SHORT),
}
"""What ``make soak`` runs as well."""


@click.command()
@click.argument("group", required=False, type=click.Choice([*PARTS, *WHOLE]))
def main(group: str | None) -> None:
    """Records the figures of all groups anew, or those of one."""
    known = recorded() if FILE.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        simulator = Simulator(Path(folder))
        for name, figures in (PARTS | WHOLE).items():
            if group in (None, name):
                known[name] = told(figures(simulator))
                write(known)
                click.echo(f"{name}: {known[name]}")


if __name__ == "__main__":
    main()
