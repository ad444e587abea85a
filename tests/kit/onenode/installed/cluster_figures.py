"""What edgeshare costs a node that runs a real kubelet, and how soon it is back there: as JSON on standard output, as a
table too where that is a terminal.

For the node of `make cluster`, with no pod on it.
"""

import json
import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from rich.console import Console

from bench.figures import within
from bench.host import cpu_seconds, describe_host
from bench.report import Row, Target, as_table
from edgeshare.contract.names import GPU_PERCENT
from tests.kit.onenode.installed.footprint import working_set_mib
from tests.kit.onenode.installed.parts import DAEMONSET, MANAGER, PLUGIN, Parts
from tests.kit.onenode.installed.release import GPUS, install
from tests.kit.onenode.layout import PLUGIN_SOCKET, default_layout
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.given import allocatable
from tests.kit.onenode.pods.pods import Pods, container, pod
from tests.kit.onenode.watches.pods_watch import PodsWatch
from tests.kit.processes.errors import NodeError
from tests.kit.processes.script import main
from tests.kit.processes.waiting import COME_S, until
from tests.kit.programs.binaries import KUBELETS, KUBERNETES

RESTARTS = 7
PODS = 100
PERCENT = 10  # of a simulated GPU: a context fits into its part of the memory
SETTLE_S = 30.0
IDLE_S = 60.0
LOOK_S = 0.05  # the kubelet answers 100 calls a second for everybody
READY = {PLUGIN: "edgeshare deviceplugin: ready", MANAGER: "edgeshare sharemgr node: ready"}
"""How each begins to say that it is: the plugin, each time that the kubelet has its list."""


def figures() -> None:
    """Measure all, one after the other."""
    node = Node(default_layout())
    if not node.runs:
        raise NodeError("no node runs: start one with `make cluster`")
    console = Console(stderr=True)
    rows = []
    for row in measure(node):
        console.print(str(row), markup=False, highlight=False)
        rows.append(row)
    if console.is_terminal:
        console.print(as_table(rows, "edgeshare on a real kubelet"))
    report = {"machine": describe_host(), "rows": [row.as_json() for row in rows]}
    print(json.dumps(report, indent=1, ensure_ascii=False))


def measure(node: Node) -> Iterator[Row]:
    """The figures, as they come."""
    parts = Parts(node)
    install(node, hurried=False)
    yield from footprint(node, parts)
    yield from starts(node, parts)
    for kubelet in KUBELETS:
        node.use_kubelet(kubelet)
        settings: dict[str, str | float] = {"kubelet": kubelet.version}
        yield kubelet_restarts(node, settings)
        yield from allocates(node, parts, settings)
    node.use_kubelet(KUBERNETES)
    install(node)


def footprint(node: Node, parts: Parts) -> Iterator[Row]:
    """Memory and processor time of a node on which nothing happens."""
    pids = {name: node.container_pid(parts.container(name)) for name in READY}
    time.sleep(SETTLE_S)
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    time.sleep(IDLE_S)
    percent = {name: 100 * (cpu_seconds(pid) - before[name]) / IDLE_S for name, pid in pids.items()}
    sizes = {name: working_set_mib(pid) for name, pid in pids.items()}
    settings: dict[str, str | float] = {name: f"{size:.0f} MiB" for name, size in sizes.items()}
    yield Row("working set, plugin and manager", "MiB", [sum(sizes.values())], settings, target=Target(100))
    shares: dict[str, str | float] = {name: f"{each:.2f} %" for name, each in percent.items()}
    yield Row("processor, idle", "% of a core", [sum(percent.values())], shares, target=Target(0.5))


def starts(node: Node, parts: Parts) -> Iterator[Row]:
    """From the start of both processes until the kubelet has the list and the manager answers."""
    runs = []
    for _ in range(RESTARTS):
        parts.kill(*READY)
        until(lambda: parts.life() is not None, "the plugin is registered")
        runs.append(
            max(ready_unix_s(node, name) - started_unix_s(node.container_pid(parts.container(name))) for name in READY)
        )
    yield Row("start until registered", "s", runs, target=Target(2))


def kubelet_restarts(node: Node, settings: dict[str, str | float]) -> Row:
    """From the start of the kubelet until it can give the units out; without: until it takes registrations."""
    whole, bare = [], []
    for _ in range(RESTARTS):
        node.restart_kubelet()
        until(lambda: allocatable() == GPUS * 100, "the units can be given out again", LOOK_S)
        now = time.time()
        began = started_unix_s(node.pid("kubelet"))
        whole.append(now - began)
        bare.append(PLUGIN_SOCKET.stat().st_ctime - began)
    added = [each - floor for each, floor in zip(whole, bare, strict=True)]
    return Row("kubelet restart until units are allocatable, beyond its own start", "s", added, settings, whole, bare)


def allocates(node: Node, parts: Parts, settings: dict[str, str | float]) -> Iterator[Row]:
    """How long Allocate takes, of short pods that come at once."""
    pods = Pods(node)
    names = [f"short-{number}" for number in range(PODS)]
    before = parts.figures()
    try:
        limits = {GPU_PERCENT: PERCENT}
        with PodsWatch(node) as ends:
            pods.create(*(pod(name, [container(name, "main", "--seconds", "0.1", limits=limits)]) for name in names))
            # The scheduler takes units for free a moment before the kubelet does, which then fails a pod.
            running = set(names)
            while running:
                end = ends.next(COME_S)
                if end is None:
                    raise NodeError(f"no pod has ended for {COME_S} s, but {len(running)} have not")
                running.discard(end.pod)
    finally:
        pods.delete_all()
    after = parts.figures()
    counts = {
        float(name.partition(",")[2]): value - before.get(name, 0)
        for name, value in after.items()
        if name.startswith("allocate_duration_seconds_bucket")
    }
    for share in (0.5, 0.99):
        row = f"Allocate, p{share * 100:g}"
        yield Row(row, "ms", [1000 * within(counts, share)], {**settings, "pods": PODS})


def ready_unix_s(node: Node, name: str) -> float:
    """When a container of edgeshare's said first that it is ready."""
    said = node.kubectl("logs", *DAEMONSET, f"--container={name}", "--timestamps")
    for line in said.splitlines():
        stamp, _, text = line.partition(" ")
        if text.startswith(READY[name]):
            # Nanoseconds, of which datetime takes six digits.
            return datetime.fromisoformat(f"{stamp[:26]}+00:00").timestamp()
    raise NodeError(f"{name} did not say that it is ready")


def started_unix_s(pid: int) -> float:
    """When a process started."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    ago_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - ago_s


if __name__ == "__main__":
    main(figures)
