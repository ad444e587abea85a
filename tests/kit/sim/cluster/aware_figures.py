"""What placement by profiles is worth: pods arrive at an empty cluster (aware_pods.py) and are placed by ``usable`` and
by ``aware``; then the pods of each GPU run under the node's own rule on a simulated device.

``python -m tests.kit.sim.cluster.aware_figures`` prints the figures of docs/develop/replay.md, in some two minutes.
"""

import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from pathlib import Path
from statistics import fmean, stdev

import click
from rich.console import Console
from rich.table import Table as TextTable

from bench.figures import percentile
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.options import Options
from sharemgr.cluster.placement.placing import choose
from sharemgr.cluster.placement.policies import Policy, aware, usable
from sharemgr.cluster.placement.rows import Floats
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Inventory
from sharemgr.cluster.state.profiles import Ending, Profiles, Run
from tests.kit.sim.cluster.aware_pods import SLOWNESS, Pod, nodes_for, pods_of
from tests.kit.sim.device.rules_on_device import ByGates
from tests.kit.sim.device.simulated_device import Device, Program, Simulator, Tenant

DEVICE = Device(run_s=6, settle_s=1)
PODS = 200
ASKED_PERCENT = (70, 90, 105)
"""Of all GPUs' units."""
LONGEST_PART = 1.05
"""Of its usual length; by so much the kernels of a simulated program differ."""
LATE_MS = 10


class Lab:
    """Runs programs, each one alone but once."""

    def __init__(self, simulator: Simulator, device: Device = DEVICE) -> None:
        self._simulator = simulator
        self._device = device
        self._alone: dict[Program, tuple[float, float]] = {}

    def alone(self, program: Program) -> tuple[float, float]:
        """The part of a device that it uses, and the ms that a batch of it takes, the median."""
        if program not in self._alone:
            outcome = self._simulator.run([Tenant(program, 100)], self._device, None)
            answers_ms = outcome.answers_ms[0]
            self._alone[program] = outcome.used[0], percentile(answers_ms, 50) if answers_ms else 0.0
        return self._alone[program]

    def together(self, pods: Sequence[Pod], model: str, seed: int) -> list["Ran"]:
        """What came of pods that share a GPU."""
        tenants = [Tenant(pod.kind.on(model), pod.kind.units, latency=pod.kind.latency) for pod in pods]
        outcome = self._simulator.run(tenants, replace(self._device, seed=seed), ByGates(tenants))
        found = []
        for pod, used, answers_ms in zip(pods, outcome.used, outcome.answers_ms, strict=True):
            (alone, answer_ms), (best, _) = self.alone(pod.kind.on(model)), self.alone(pod.kind.program)
            waits_ms = tuple(max(0.0, each - answer_ms) for each in answers_ms)
            found.append(Ran(pod.kind.is_a, used / alone, used / SLOWNESS[model] / best, waits_ms, answers_ms))
        return found

    def profiles(self, pods: Sequence[Pod], whose: Mapping[str, str]) -> Profiles:
        """Those of runs alone on each model, for each of these keys of the one that it is mapped to."""
        kinds = {pod.kind.key: pod.kind for pod in pods}
        profiles = Profiles()
        for key, of in whose.items():
            for model in SLOWNESS:
                program = kinds[of].on(model)
                run = Run(
                    ended_at_s=0,
                    ending=Ending.COMPLETED,
                    limit_mib=1,
                    peak_mib=0,
                    gpu_percent=min(100.0, 100 * self.alone(program)[0]),
                    kernel_p50_us=program.kernel_us,
                    kernel_longest_us=LONGEST_PART * program.kernel_us,
                    think_us=program.think_us,
                )
                profiles.learn(model, key, run, 0)
        return profiles


@dataclass(frozen=True)
class Ran:
    """What came of a pod."""

    is_a: str
    kept: float
    """Of what it uses alone on that model."""
    work: float
    """Of what it does alone on the fastest model."""
    waits_ms: tuple[float, ...]
    """By how much each of its batches took longer than alone on that model."""
    answers_ms: tuple[float, ...]


@dataclass(frozen=True)
class Figures:
    """Of one policy. All ms are of the latency class's requests, of all its pods together."""

    placed: float
    """Pods."""
    allocated_percent: float
    """Of all GPUs' units."""
    wait_p50_ms: float
    """Beyond what it takes alone on the same model."""
    wait_p99_ms: float
    answer_p99_ms: float
    late_percent: float
    """Requests that waited for longer than 10 ms."""
    served: float
    """Requests, of those that its pods make alone: one that is not answered yet keeps the next one back."""
    work: float
    """The others', in the mean over all that arrived, of what each does alone on the fastest model."""
    kept: float
    """The same over those that were placed, of what each does alone on the same model."""
    kept_least: float
    """The tenth of these that keeps least."""


def place(pods: Sequence[Pod], nodes: Sequence[Inventory], policy: Policy, profiles: Profiles) -> dict[str, list[Pod]]:
    """By GPU, the pods that were placed as they came; none leaves."""
    ledger, table, shapes = Ledger(), Table(profiles), Shapes()
    for node in nodes:
        ledger.set_inventory(node)
    placed: dict[str, list[Pod]] = {gpu.id: [] for node in nodes for gpu in node.devices}
    table.update(ledger)
    for number, pod in enumerate(pods):
        shapes.see(pod.request)
        holding = choose(ledger, table, str(number), pod.request, policy, shapes.demand(table))
        if holding is not None:
            ledger.assume(holding)
            placed[holding.takes[0].device_id].append(pod)
    return placed


def figures(lab: Lab, pods: Sequence[Pod], nodes: Sequence[Inventory], policy: Policy, profiles: Profiles) -> Figures:
    """Places the pods and runs them."""
    placed = place(pods, nodes, policy, profiles)
    models = {gpu.id: gpu.model for node in nodes for gpu in node.devices}
    runs = [
        lab.together(there, models[gpu], seed) for seed, (gpu, there) in enumerate(placed.items(), start=1) if there
    ]
    ran = list(chain.from_iterable(runs))
    served = [each for each in ran if each.is_a == "inference"]
    others = [each for each in ran if each.is_a != "inference"]
    waits_ms = list(chain.from_iterable(each.waits_ms for each in served))
    answers_ms = list(chain.from_iterable(each.answers_ms for each in served))
    units = sum(pod.kind.units for there in placed.values() for pod in there)
    return Figures(
        placed=len(ran),
        allocated_percent=100 * units / (UNITS_PER_DEVICE * len(models)),
        wait_p50_ms=percentile(waits_ms, 50),
        wait_p99_ms=percentile(waits_ms, 99),
        answer_p99_ms=percentile(answers_ms, 99),
        late_percent=100 * fmean(wait > LATE_MS for wait in waits_ms),
        served=fmean(each.kept for each in served),
        work=sum(each.work for each in others) / sum(not pod.kind.latency for pod in pods),
        kept=fmean(each.kept for each in others),
        kept_least=percentile([each.kept for each in others], 10),
    )


def every(keys: Sequence[str]) -> dict[str, str]:
    """Each program's profile is known."""
    return {key: key for key in keys}


def half(keys: Sequence[str]) -> dict[str, str]:
    """Those of half the programs are."""
    return every(keys[::2])


def anothers(keys: Sequence[str]) -> dict[str, str]:
    """Each has the profile of some program, mostly of another."""
    shuffled = list(keys)
    random.Random(1).shuffle(shuffled)
    return dict(zip(keys, shuffled, strict=True))


def without(term: str) -> Policy:
    """``aware`` with one of its terms taken out."""

    def score(options: Options, demand: Demand) -> Floats:
        return aware.score_by([cost for name, cost in aware.COSTS.items() if name != term], options, demand)

    return score


Row = tuple[Policy, Callable[[Sequence[str]], dict[str, str]]]
"""A policy, and what it knows."""
ROWS: dict[str, Row] = {
    "usable": (usable.score, every),
    "aware": (aware.score, every),
    "aware, half of the profiles": (aware.score, half),
    "aware, each another's profile": (aware.score, anothers),
}
TERMS: dict[str, Row] = {f"aware without {term}": (without(term), every) for term in aware.COSTS}


def row(lab: Lab, name: str, asked_percent: int, seed: int, count: int = PODS) -> Figures:
    """One run of one row."""
    pods = pods_of(count, seed)
    policy, known = (ROWS | TERMS)[name]
    profiles = lab.profiles(pods, known(sorted({pod.kind.key for pod in pods})))
    return figures(lab, pods, nodes_for(pods, asked_percent), policy, profiles)


def means(runs: Sequence[Figures]) -> dict[str, tuple[float, float]]:
    """Of each figure mean and standard deviation."""
    values = {field.name: [float(asdict(run)[field.name]) for run in runs] for field in fields(Figures)}
    return {name: (fmean(of), stdev(of) if len(of) > 1 else 0.0) for name, of in values.items()}


@click.command()
@click.option("--seeds", default=5, show_default=True, help="How many, from 1 on.")
@click.option("--pods", default=PODS, show_default=True, help="How many.")
@click.option("--asked", multiple=True, type=int, default=ASKED_PERCENT, show_default=True, help="Percent of all GPUs.")
@click.option("--terms", is_flag=True, help="With `aware` without each of its terms, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")
def main(seeds: int, pods: int, asked: tuple[int, ...], terms: bool, as_json: bool) -> None:
    """Prints each figure of each row, mean ± standard deviation over the seeds."""
    report: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    table = TextTable("asked %", "policy", *(field.name for field in fields(Figures)))
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Simulator(Path(folder)))
        for asked_percent in asked:
            for name in [*ROWS, *(TERMS if terms else ())]:
                found = means([row(lab, name, asked_percent, seed, pods) for seed in range(1, seeds + 1)])
                told = {figure: {"mean": mean, "sd": sd} for figure, (mean, sd) in found.items()}
                report.setdefault(str(asked_percent), {})[name] = told
                table.add_row(str(asked_percent), name, *(f"{mean:.2f} ± {sd:.2f}" for mean, sd in found.values()))
                click.echo(f"{asked_percent} %: {name}", err=True)
    if as_json:
        click.echo(json.dumps(report))
    else:
        Console(width=200).print(table)


if __name__ == "__main__":
    main()
