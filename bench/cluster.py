"""``python -m bench.cluster [--nodes N]… [--assigner thin]``: what the assigner costs a cluster's scheduler, as JSON on
standard output. Beside the same cluster without it, in one run."""

import asyncio
import json
import signal
import socket
import sys
import tempfile
import urllib.request
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import yaml
from manynodes import nodes, pods
from manynodes.api import Api, api
from manynodes.bound import Bound, BoundPods
from manynodes.cluster import Cluster, cluster
from manynodes.plugins import Plugins
from onenode.api_server import STOP_S, free_ports
from onenode.control_plane import SCHEDULER
from onenode.errors import NodeError
from onenode.probe import answers
from onenode.scheduling import Extender
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from bench.figures import median, within
from bench.host import describe_host
from bench.report import Row, Target, as_table
from edgeshare.assignment import parse_assignment
from edgeshare.cli.demo_load import OtherLoad
from edgeshare.kube import Kube
from edgeshare.units import UNITS_PER_DEVICE, default_memory_mib, parse_request_percent

NODES = (1_000, 5_000)
PODS = 1_000
PAIRS = 3
BOUND_S = 300
"""A safety limit: that many pods are bound in some ten seconds."""
READY_S = 120
ASSIGNER = "assigner"
BINDING = "the API server's part of bind"
HISTOGRAMS = {"edgeshare_assigner_verb_seconds": "", "edgeshare_assigner_binding_seconds": BINDING}
"""What is read of the assigner's, and under which name, where they are not told by verb."""
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
@click.option("--plain", is_flag=True, help="HTTP without TLS between kube-scheduler and the extender.")
def main(counts: Sequence[int], pods_a_run: int, pairs: int, extender: str, choice: str, plain: bool) -> None:
    """Measures pods bound a second with an extender and without."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    console = Console(stderr=True)
    host, load = describe_host(), OtherLoad()
    rows: list[Row] = []
    for count in counts:
        settings = {"nodes": count, "pods": pods_a_run, "extender": extender, "choice": choice, "tls": str(not plain)}
        for row in asyncio.run(measure(console, count, pods_a_run, pairs, Kind(extender, choice, plain), settings)):
            rows.append(row)
            console.print(str(row), markup=False, highlight=False, soft_wrap=True)
    host["others_and_cluster_cpu_percent"] = round(load.percent(), 1)
    if console.is_terminal:
        console.print(as_table(rows, "edgeshare and a cluster's scheduler"))
    click.echo(json.dumps({"machine": host, "rows": [row.as_json() for row in rows]}, indent=1, ensure_ascii=False))


@dataclass(frozen=True)
class Kind:
    """Which extender, and how it is spoken to."""

    name: str
    choice: str
    plain: bool


async def measure(
    console: Console, count: int, pods_a_run: int, pairs: int, kind: Kind, settings: dict[str, str | float]
) -> list[Row]:
    """The figures of a cluster of so many nodes: with and without take turns."""
    without: list[float] = []
    with_it: list[float] = []
    counts: dict[str, Counter[float]] = defaultdict(Counter)
    counts_paced: dict[str, Counter[float]] = {}
    sizes_mib: list[float] = []
    async with stage(count) as on:
        console.print(f"{count} nodes are there", highlight=False)
        for number in range(pairs):
            without.append(await rate(on, f"without-{number}", pods_a_run))
            console.print(f"without: {without[-1]:.0f} pods/s", highlight=False)
            with extending(on.cluster, kind) as (extender, metrics):

                def look(metrics: str = metrics) -> None:
                    sizes_mib.append(resident_mib(on.cluster.server.daemons.pid(kind.name)))
                    if kind.name == ASSIGNER:
                        check_placement(list(on.bound.pods.values()))
                        for verb, found in verb_counts(metrics).items():
                            counts[verb].update(found)

                with_it.append(await rate(on, f"with-{number}", pods_a_run, extender, look))
            console.print(f"with: {with_it[-1]:.0f} pods/s", highlight=False)
        pace = median(with_it) / 2
        if kind.name == ASSIGNER:
            with extending(on.cluster, kind) as (extender, metrics):
                await paced(on, pods_a_run, pace, extender)
                counts_paced = verb_counts(metrics)
    ratios = [each / bare for each, bare in zip(with_it, without, strict=True)]
    rows = [
        Row("pods bound a second, with / without", "", ratios, settings, with_it, without, Target(0.8, at_least=True)),
        Row("resident memory", "MiB", sizes_mib, settings, target=Target(300)),
    ]
    for of, found in (
        (settings | {"pods_a_second": "all at once"}, counts),
        (settings | {"pods_a_second": round(pace, 1)}, counts_paced),
    ):
        for verb, times in found.items():
            rows.append(Row(f"{verb}, p50", "ms", [1000 * within(times, 0.5)], of))
            target = None if verb == BINDING else Target(10)
            rows.append(Row(f"{verb}, p99", "ms", [1000 * within(times, 0.99)], of, target=target))
    return rows


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
    on: Stage, prefix: str, count: int, extender: Extender | None = None, look: Callable[[], None] = lambda: None
) -> float:
    """Pods bound a second, from the first binding to the last. All wait when the scheduler starts; ``look`` is called
    while they are bound."""
    await on.api.post_all(pods.pods(prefix, count))
    on.bound.forget_times()
    on.cluster.start_scheduler(extender)
    try:
        await all_bound(on, count)
    finally:
        on.cluster.stop_scheduler()
    found = (count - 1) / (on.bound.last_s - on.bound.first_s)
    look()
    await clear(on)
    return found


async def paced(on: Stage, count: int, pods_a_second: float, extender: Extender) -> None:
    """Has pods bound as they come, so many a second: no more than there is time for."""
    on.cluster.start_scheduler(extender)
    try:
        # Its caches are filled when it has bound the first.
        await on.api.post_all(pods.pods("first", 1))
        await all_bound(on, 1)
        await on.api.post_paced(pods.pods("paced", count), 1 / pods_a_second)
        await all_bound(on, count + 1)
    finally:
        on.cluster.stop_scheduler()
    await clear(on)


async def all_bound(on: Stage, count: int) -> None:
    """Waits until so many pods are. Raises NodeError."""
    if not await on.bound.until(count, BOUND_S):
        raise NodeError(f"{len(on.bound.pods)} of {count} pods are bound after {BOUND_S} s")


async def clear(on: Stage) -> None:
    """Deletes all pods, and waits until nobody remembers one. Raises NodeError."""
    await on.api.delete_all(pods.COLLECTION)
    if not await on.bound.until(0, BOUND_S):
        raise NodeError(f"{len(on.bound.pods)} pods are still there {BOUND_S} s after they were deleted")
    await on.plugins.until_written()


@contextmanager
def extending(on: Cluster, kind: Kind) -> Iterator[tuple[Extender, str]]:
    """The extender, ready, and the address of its metrics."""
    address, metrics = (f"127.0.0.1:{port}" for port in free_ports(2))
    authority, daemons = on.server.authority, on.server.daemons
    certificate, key = authority.issue(kind.name, "edgeshare", group="system:masters", hosts=("IP:127.0.0.1",))
    reached = on.extender_at(address)
    if kind.plain:
        reached = replace(reached, trust=None)
    if kind.name == ASSIGNER:
        config: dict[str, Any] = {
            "address": address,
            "metrics_address": metrics,
            "choice": kind.choice,
            "kubeconfig": str(on.server.kubeconfig),
        }
        if not kind.plain:
            config["tls"] = {
                "certificate": str(certificate),
                "private_key": str(key),
                "client_authority": str(authority.certificate),
                "clients": [SCHEDULER],
            }
        file = on.server.kubeconfig.with_name("assigner.yaml")
        file.write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "edgeshare.cli", "sharemgr", "cluster", f"--config={file}"]
        ready = partial(answers, f"http://{metrics}/readyz")
    else:
        command = [sys.executable, "-m", "bench.thin_extender", f"--address={address}", f"--certificate={certificate}"]
        command += [f"--key={key}", f"--authority={authority.certificate}", f"--server={on.server.url}"]
        command += ["--plain"] * kind.plain + ["--one"] * (kind.choice == "filter")
        ready = partial(listens, address)
    daemons.start(kind.name, command)
    try:
        daemons.wait_until(kind.name, ready, READY_S)
        yield reached, metrics
    finally:
        daemons.stop(kind.name, STOP_S)


def listens(address: str) -> bool:
    """Whether somebody accepts connections there."""
    host, _, port = address.rpartition(":")
    with socket.socket() as tried:
        return tried.connect_ex((host, int(port))) == 0


def verb_counts(metrics: str) -> dict[str, Counter[float]]:
    """Of each verb, and of the API server's answers to Bindings, how many took no longer than so many seconds, as the
    assigner counted."""
    with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=READY_S) as answer:
        text = answer.read().decode()
    counts: dict[str, Counter[float]] = defaultdict(Counter)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            of = HISTOGRAMS.get(sample.name.removesuffix("_bucket"))
            if of is not None and "le" in sample.labels and sample.value:
                counts[sample.labels.get("verb", of)][float(sample.labels["le"])] += int(sample.value)
    return counts


def resident_mib(pid: int) -> float:
    """The most that a process has had of the machine's memory."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    peak_kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak_kib) / 1024


def check_placement(bound: Sequence[Bound]) -> None:
    """Raises NodeError where the annotations put more on a GPU than it has, or a pod on another node's GPU."""
    units: Counter[tuple[str, str]] = Counter()
    memory_mib: Counter[tuple[str, str]] = Counter()
    there: dict[str, set[str]] = {}
    for pod in bound:
        if pod.assignment is None:
            raise NodeError(f"{pod.name} is bound to {pod.node} without an assignment")
        count, each = parse_request_percent(pod.percent)
        gpus = parse_assignment(pod.assignment)["main"]
        known = there.setdefault(pod.node, {device.id for device in nodes.devices(pod.node)})
        if len(gpus) != count or not known.issuperset(gpus):
            raise NodeError(f"{pod.name} on {pod.node} is assigned {gpus}")
        for gpu in gpus:
            units[pod.node, gpu] += each
            memory_mib[pod.node, gpu] += pod.memory_mib or default_memory_mib(nodes.GPU_MIB, each)
    for (node, gpu), taken in units.items():
        if taken > UNITS_PER_DEVICE or memory_mib[node, gpu] > nodes.GPU_MIB:
            raise NodeError(f"{gpu} of {node} is over-committed: {taken} units, {memory_mib[node, gpu]} MiB")


if __name__ == "__main__":
    try:
        main()
    except NodeError as error:
        click.echo(f"bench-cluster: {error}", err=True)
        sys.exit(1)
