"""What the assigner costs a pod in processor time, between stand-ins for the API server and kube-scheduler."""

import asyncio
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.assigner.api_server import ApiServer
from bench.assigner.loop import Loop, Phase
from bench.assigner.objects import accelerators, node, pods
from bench.assigner.process import api_tls, assigning
from bench.assigner.scheduler import scheduling
from bench.host import cpu_seconds
from bench.measurement import Bench, Effort, Measurement
from bench.report import Row, Target

NODES = 1_000
TARGET_MS = Target(1.2)


@dataclass(frozen=True)
class Taken:
    """What a phase took of the processor, a pod."""

    assigner_ms: float
    own_ms: float
    """The stand-ins'. That is the same whatever the assigner does: it tells how fast the machine was meanwhile."""


def measurements(effort: Effort) -> list[Measurement]:
    """One."""
    return [Measurement("the assigner's processor time", partial(measure, effort.assigner_runs, effort.assigner_pods))]


def measure(runs: int, count: int, bench: Bench) -> list[Row]:
    """In each run so many pods go through each phase; what a phase takes beyond the one before is the figure of what it
    adds. All processes share one core, as in a busy control plane."""
    folder = bench.folder / "assigner"
    folder.mkdir(exist_ok=True)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        taken, refused = asyncio.run(_measure(folder, runs, count))
    finally:
        os.sched_setaffinity(0, cores)
    settings = {"nodes": NODES, "pods": count}
    note = f"of {runs * 2 * count} Bindings {refused} were asked for in vain"
    filtered, bound, told = ([run[phase].assigner_ms for run in taken] for phase in Phase)
    whole = Row("the assigner's processor time a pod", "ms", told, settings, target=TARGET_MS, note=note)
    parts = {
        "the assigner's processor time: filter": filtered,
        "the assigner's processor time: bind": [more - less for more, less in zip(bound, filtered, strict=True)],
        "the assigner's processor time: watches": [more - less for more, less in zip(told, bound, strict=True)],
        "the stand-ins' processor time a pod": [run[Phase.TOLD].own_ms for run in taken],
    }
    return [whole, *(Row(name, "ms", values, settings) for name, values in parts.items())]


async def _measure(folder: Path, runs: int, count: int) -> tuple[list[list[Taken]], int]:
    """Of each run what each phase took; and how many Bindings were refused."""
    names = [f"node-{number:05d}" for number in range(NODES)]
    server = ApiServer([node(name) for name in names], [accelerators(name, 1, ()) for name in names])
    serving, authority = api_tls(folder)
    async with (
        server.running(serving) as api_url,
        assigning(folder, api_url, authority) as (url, pid),
        scheduling(url) as scheduler,
    ):
        loop = Loop(server, scheduler, names)
        # Then as many pods go as come.
        await loop.run(pods("warm-up", count // 2), Phase.TOLD)
        taken = []
        for run in range(runs):
            taken.append([await _phase(loop, pid, phase, f"{phase.name.lower()}-{run}", count) for phase in Phase])
        return taken, loop.refused


async def _phase(loop: Loop, pid: int, phase: Phase, prefix: str, count: int) -> Taken:
    going = pods(prefix, count)
    before_s, own_before_s = cpu_seconds(pid), time.process_time()
    await loop.run(going, phase)
    taken_s, own_s = cpu_seconds(pid) - before_s, time.process_time() - own_before_s
    return Taken(1000 * taken_s / count, 1000 * own_s / count)
