"""``python -m bench.cluster [--nodes N]… [--assigner thin]``: what the assigner costs a cluster's scheduler, as JSON on
standard output. Beside the same cluster without it, in one run."""

import asyncio
import json
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from bench.cluster.extenders import ASSIGNER, Kind, extending
from bench.cluster.rows import Run, binding_rows, rate_apart, rate_row, total, verb_rows
from bench.cluster.scrapes import (
    Times,
    assigner_metrics,
    binding_times,
    bindings_without_room,
    processor_ms,
    verb_times,
)
from bench.figures import median
from bench.host import describe_host, resident_mib
from bench.report import Row, Target, as_table
from edgeshare.contract.assignment import parse_assignment
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.units import UNITS_PER_DEVICE, memory_cap_mib, parse_request_percent
from edgeshare.kube.kube import Kube
from simgpu.stage.other_load import OtherLoad
from tests.kit.manynodes import nodes, pods
from tests.kit.manynodes.api import Api, api
from tests.kit.manynodes.bound import Bound, BoundPods
from tests.kit.manynodes.cluster import SCHEDULER as SCHEDULER_PROCESS
from tests.kit.manynodes.cluster import Cluster, cluster
from tests.kit.manynodes.plugins import Plugins
from tests.kit.onenode.scheduling import Extender
from tests.kit.processes.errors import NodeError

NODES = (1_000, 5_000)
PODS = 1_000
PAIRS = 5
BOUND_S = 300
"""A safety limit: that many pods are bound in some ten seconds."""
PROCESSES = ("api-server", SCHEDULER_PROCESS, "etcd")
"""Whose processor time is told, beside the extender's own."""
MEMORY_DIR = Path("/dev/shm")


@dataclass(frozen=True)
class Stage:
    """A cluster with its nodes, and whoever watches it."""

    cluster: Cluster
    api: Api
    bound: BoundPods
    plugins: Plugins


@click.command("bench-cluster")
@click.option("--nodes", "counts", type=int, multiple=True, default=NODES, show_default=True)
@click.option("--pods", "pods_a_run", type=int, default=PODS, show_default=True)
@click.option("--pairs", type=int, default=PAIRS, show_default=True, help="Runs with, each beside one without.")
@click.option(
    "--extender",
    type=click.Choice(["assigner", "thin"]),
    default="assigner",
    show_default=True,
    help="thin: the least that an extender in Python can do, as the floor.",
)
@click.option("--choice", type=click.Choice(["scores", "filter"]), default="filter", show_default=True)
@click.option(
    "--loopback", is_flag=True, help="HTTP without TLS between kube-scheduler and the extender, as in the chart's pod."
)
def main(counts: Sequence[int], pods_a_run: int, pairs: int, extender: str, choice: str, loopback: bool) -> None:
    """Measures pods bound a second with an extender and without."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    console = Console(stderr=True)
    host, load = describe_host(), OtherLoad()
    rows: list[Row] = []
    for count in counts:
        settings: dict[str, str | float] = {
            "nodes": count,
            "pods": pods_a_run,
            "extender": extender,
            "choice": choice,
            "tls": str(not loopback),
        }
        for row in asyncio.run(measure(console, count, pods_a_run, pairs, Kind(extender, choice, loopback), settings)):
            rows.append(row)
            console.print(str(row), markup=False, highlight=False, soft_wrap=True)
    host["others_and_cluster_cpu_percent"] = round(load.percent(), 1)
    if console.is_terminal:
        console.print(as_table(rows, "edgeshare and a cluster's scheduler"))
    click.echo(json.dumps({"machine": host, "rows": [row.as_json() for row in rows]}, indent=1, ensure_ascii=False))


@dataclass
class Taken:
    """What was measured of an extender beside the same cluster without it."""

    processes: tuple[str, ...]
    without: list[Run] = field(default_factory=list)
    with_it: list[Run] = field(default_factory=list)
    verbs: defaultdict[str, Counter[float]] = field(default_factory=lambda: defaultdict(Counter))
    """How long the assigner's answers took, all pods at once."""
    sizes_mib: list[float] = field(default_factory=list)
    without_room: list[float] = field(default_factory=list)
    """Of each run, how many pods found the room gone at bind: of the assigner alone."""

    def look(self, on: Stage, kind: Kind, metrics: str) -> None:
        """Takes in how the extender is at the end of a run."""
        self.sizes_mib.append(resident_mib(on.cluster.server.daemons.pid(kind.name), most=True))
        if kind.name == ASSIGNER:
            check_placement(list(on.bound.pods.values()))
            exposition = assigner_metrics(metrics)
            self.without_room.append(bindings_without_room(exposition))
            for verb, found in verb_times(exposition).items():
                self.verbs[verb].update(found)


async def measure(
    console: Console, count: int, pods_a_run: int, pairs: int, kind: Kind, settings: dict[str, str | float]
) -> list[Row]:
    """The figures of a cluster of so many nodes."""
    async with stage(count) as on:
        console.print(f"{count} nodes are there", highlight=False)
        taken = await at_once(console, on, pods_a_run, pairs, kind)
        pace = median([run.pods_a_second for run in taken.with_it]) / 2
        without_paced = await paced(on, "alone", pods_a_run, pace)
        with extending(on.cluster, kind) as (extender, metrics):
            with_paced = await paced(on, "paced", pods_a_run, pace, extender)
            verbs_paced = verb_times(assigner_metrics(metrics)) if kind.name == ASSIGNER else {}
    at_pace = settings | {"pods_a_second": round(pace, 1)}
    paced_rows = [*binding_rows(with_paced, without_paced, at_pace), *verb_rows(verbs_paced, at_pace)]
    return [*at_once_rows(taken, kind, settings), *paced_rows]


async def at_once(console: Console, on: Stage, pods_a_run: int, pairs: int, kind: Kind) -> Taken:
    """Has all pods of a run come at once: with and without the extender take turns."""
    # The API server's memory grows in the first, and its processor time with it.
    await rate(on, "warming-up", pods_a_run)
    taken = Taken((*PROCESSES, kind.name))
    for number in range(pairs):
        taken.without.append(await rate(on, f"without-{number}", pods_a_run))
        console.print(f"without: {taken.without[-1].pods_a_second:.0f} pods/s", highlight=False)
        with extending(on.cluster, kind) as (extender, metrics):
            look = partial(taken.look, on, kind, metrics)
            taken.with_it.append(await rate(on, f"with-{number}", pods_a_run, extender, look, taken.processes))
        console.print(f"with: {taken.with_it[-1].pods_a_second:.0f} pods/s", highlight=False)
    return taken


def at_once_rows(taken: Taken, kind: Kind, settings: dict[str, str | float]) -> list[Row]:
    """The rows of runs whose pods all came at once."""
    rates, bare = ([run.pods_a_second for run in runs] for runs in (taken.with_it, taken.without))
    apart = [rate_apart(run, kind.name) for run in taken.with_it]
    rows = [
        rate_row("pods bound a second, with / without", settings, rates, bare, 0.8),
        rate_row("the same, with a processor of its own", settings, apart, bare, 0.95),
        Row("resident memory", "MiB", taken.sizes_mib, settings, target=Target(300)),
    ]
    if taken.without_room:
        rows.append(Row("pods that found the room gone at bind", "", taken.without_room, settings, target=Target(0)))
    for name in taken.processes:
        used, alone = ([run.processor_ms.get(name, 0) for run in runs] for runs in (taken.with_it, taken.without))
        rows.append(Row(f"processor time a pod, {name}", "ms", used, settings, used, alone))
    together = settings | {"pods_a_second": "all at once"}
    with_it, without = (total(run.bindings for run in runs) for runs in (taken.with_it, taken.without))
    return [*rows, *binding_rows(with_it, without, together), *verb_rows(taken.verbs, together)]


@asynccontextmanager
async def stage(count: int) -> AsyncIterator[Stage]:
    """A cluster of so many nodes, in memory: a disk's writes are not what is measured."""
    with (
        tempfile.TemporaryDirectory(dir=MEMORY_DIR, prefix="edgeshare-bench-") as folder,
        cluster(Path(folder)) as made,
    ):
        kube = Kube.from_kubeconfig(made.server.kubeconfig)
        pair = made.server.authority.issue("bench", "bench", group="system:masters")
        async with api(made.server.url, made.server.authority.certificate, *pair) as calls:
            await calls.post_all(each for name in nodes.names(count) for each in nodes.objects(name))
            bound = BoundPods(kube)
            plugins = Plugins(kube, bound)
            bound.start()
            try:
                # A stand-in that cannot write ends the measurement.
                async with asyncio.TaskGroup() as group:
                    writing = group.create_task(plugins.run())
                    yield Stage(made, calls, bound, plugins)
                    writing.cancel()
            finally:
                bound.stop()


async def rate(
    on: Stage,
    prefix: str,
    count: int,
    extender: Extender | None = None,
    look: Callable[[], None] = lambda: None,
    processes: Sequence[str] = PROCESSES,
) -> Run:
    """Has pods bound as fast as they can be; their rate is from the first binding to the last. All wait when the
    scheduler starts. ``look`` is called while they are bound; of ``processes`` the processor time is told."""
    await on.api.post_all(pods.pods(prefix, count))
    on.bound.forget_times()
    server = on.cluster.server
    before = binding_times(server)
    on.cluster.start_scheduler(extender)
    try:
        await until_bound(on, count // 10)
        begun, used_ms = len(on.bound.pods), processor_ms(server.daemons, processes)
        await until_bound(on, count)
        used_ms = processor_ms(server.daemons, processes) - used_ms
    finally:
        on.cluster.stop_scheduler()
    pods_a_second = (count - 1) / (on.bound.last_s - on.bound.first_s)
    bindings = binding_times(server, before)
    look()
    await clear(on)
    return Run(pods_a_second, {name: ms / max(1, count - begun) for name, ms in used_ms.items()}, bindings)


async def paced(on: Stage, prefix: str, count: int, pods_a_second: float, extender: Extender | None = None) -> Times:
    """Has pods bound as they come, so many a second: no more than there is time for. How long the API server took to
    answer their Bindings."""
    on.cluster.start_scheduler(extender)
    try:
        # Its caches are filled when it has bound the first.
        await on.api.post_all(pods.pods(f"first-{prefix}", 1))
        await until_bound(on, 1)
        before = binding_times(on.cluster.server)
        await on.api.post_paced(pods.pods(prefix, count), 1 / pods_a_second)
        await until_bound(on, count + 1)
    finally:
        on.cluster.stop_scheduler()
    bindings = binding_times(on.cluster.server, before)
    await clear(on)
    return bindings


async def until_bound(on: Stage, count: int) -> None:
    """Waits until so many pods are. Raises NodeError."""
    if not await on.bound.until(lambda there: there >= count, BOUND_S):
        raise NodeError(f"{len(on.bound.pods)} of {count} pods are bound after {BOUND_S} s")


async def clear(on: Stage) -> None:
    """Deletes all pods, and waits until nobody remembers one. Raises NodeError."""
    await on.api.delete_all(pods.COLLECTION)
    if not await on.bound.until(lambda there: there == 0, BOUND_S):
        raise NodeError(f"{len(on.bound.pods)} pods are still there {BOUND_S} s after they were deleted")
    await on.plugins.until_written()


def check_placement(bound: Sequence[Bound]) -> None:
    """Raises NodeError where the annotations put more on a GPU than it has, or a pod on another node's GPU."""
    units: Counter[tuple[str, str]] = Counter()
    memory_mib: Counter[tuple[str, str]] = Counter()
    there: dict[str, set[str]] = {}
    for pod in bound:
        if pod.assignment is None:
            raise NodeError(f"{pod.name} is bound to {pod.node} without an assignment")
        count, each = parse_request_percent(pod.percent)
        gpus = parse_assignment(pod.assignment)[Accelerator.GPU]["main"]
        known = there.setdefault(pod.node, {device.id for device in nodes.devices(pod.node)})
        if len(gpus) != count or not known.issuperset(gpus):
            raise NodeError(f"{pod.name} on {pod.node} is assigned {gpus}")
        for gpu in gpus:
            units[pod.node, gpu] += each
            memory_mib[pod.node, gpu] += memory_cap_mib(pod.memory_mib, nodes.GPU_MIB, each)
    for (node, gpu), taken in units.items():
        if taken > UNITS_PER_DEVICE or memory_mib[node, gpu] > nodes.GPU_MIB:
            raise NodeError(f"{gpu} of {node} is over-committed: {taken} units, {memory_mib[node, gpu]} MiB")


if __name__ == "__main__":
    try:
        main()
    except NodeError as error:
        click.echo(f"bench-cluster: {error}", err=True)
        sys.exit(1)
