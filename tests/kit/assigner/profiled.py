"""Programs that have profiles: what each of them does, and on which models that was seen."""

from collections.abc import Iterable
from typing import Any

from sharemgr.cluster.state.profiles import Ending, Profiles, Run
from sharemgr.cluster.state.request import Program

MODELS = ("T4", "A100")
TRAINS, QUICK, BURSTY = Program("trains"), Program("quick"), Program("bursty")
SERVES = Program("serves", latency=True)


def a_run(**of: Any) -> Run:
    """One that came to its end, of which this was measured."""
    return Run(0, Ending.COMPLETED, limit_mib=1, peak_mib=0, **of)


RUNS = {
    "trains": a_run(gpu_percent=100, kernel_p50_us=20_000, kernel_longest_us=20_000),
    "quick": a_run(gpu_percent=100, kernel_p50_us=200, kernel_longest_us=200),
    "bursty": a_run(gpu_percent=20, kernel_p50_us=100, kernel_longest_us=100),
    "serves": a_run(gpu_percent=10, kernel_p50_us=500, kernel_longest_us=500),
}


def profiles_of(runs: dict[str, Run], models: Iterable[str] = MODELS) -> Profiles:
    """What is known of each program by one run on each model."""
    profiles = Profiles()
    for model in models:
        for key, run in runs.items():
            profiles.learn(model, key, run, 0)
    return profiles
