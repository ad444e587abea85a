"""How much of a recorded cluster's GPUs the default policy comes to allocate, and how long a replay takes."""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

from bench.measurement import Bench, Effort, Measurement
from bench.report import Row, Target
from sharemgr.cluster.placement.policies import DEFAULT, POLICIES
from sharemgr.replay.arrivals import SEEDS, arrivals, at_percent, capacity_units, replay
from sharemgr.replay.openb import read_nodes, read_pods

FOLDER = Path(os.environ.get("EDGESHARE_OPENB_DIR", Path(__file__).parents[3] / "shared/data/openb"))
NODES = FOLDER / "openb_node_list_gpu_node.csv"

PUBLISHED_PERCENT = {"default": 95.23, "cpu100": 95.21, "gpushare40": 93.96, "multigpu20": 95.53, "gpuspec10": 94.66}
"""What FGD's authors report for FGD at 100 % arrival: means of ten runs (Weng et al., USENIX ATC 2023)."""

ARRIVALS = 10_000
REPLAY_S = Target(10)


def measurements(effort: Effort) -> list[Measurement]:
    """One a trace, and the time that a replay takes; none where there are no traces."""
    if not NODES.is_file():
        return []
    traces = [
        Measurement(f"placement, trace {trace}", partial(measure_trace, trace, SEEDS[: effort.placement_seeds]))
        for trace in PUBLISHED_PERCENT
    ]
    return [*traces, Measurement("a replay's time", partial(measure_time, effort.replay_runs))]


def measure_trace(trace: str, seeds: Sequence[int], bench: Bench) -> list[Row]:
    """Ours and, beside it, FGD as it is here, of the same arrivals; the target is FGD's published mean."""
    with ProcessPoolExecutor() as processes:
        ours, fgd = (list(processes.map(partial(allocated, trace, policy), seeds)) for policy in (DEFAULT, "fgd"))
    note = f"the mean of {len(seeds)} seeds; {DEFAULT} beside fgd"
    if len(seeds) > 1:
        note = f"{note}; standard deviation {stdev(ours):.2f} and {stdev(fgd):.2f}"
    target = Target(PUBLISHED_PERCENT[trace], at_least=True)
    settings = {"trace": trace, "seeds": f"{seeds[0]} to {seeds[-1]}"}
    return [Row("GPUs allocated at 100 % arrival", "%", [fmean(ours)], settings, ours, fgd, target, note=note)]


def allocated(trace: str, policy: str, seed: int) -> float:
    """In percent of all GPUs."""
    nodes = read_nodes(NODES)
    order = arrivals(read_pods(pods_file(trace)), capacity_units(nodes), seed)
    return at_percent(replay(nodes, order, POLICIES[policy]), [100])[100]


def measure_time(runs: int, bench: Bench) -> list[Row]:
    """A replay alone, its files read before."""
    nodes, pods = read_nodes(NODES), read_pods(pods_file("default"))
    taken_s = []
    for seed in SEEDS[:runs]:
        order = arrivals(pods, capacity_units(nodes), seed)[:ARRIVALS]
        begin_s = time.perf_counter()
        for _ in replay(nodes, order, POLICIES[DEFAULT]):
            pass
        taken_s.append(time.perf_counter() - begin_s)
    return [Row("a replay", "s", taken_s, {"arrivals": ARRIVALS, "nodes": len(nodes)}, target=REPLAY_S)]


def pods_file(trace: str) -> Path:
    """Where a trace's pods are."""
    return FOLDER / f"openb_pod_list_{trace}.csv"
