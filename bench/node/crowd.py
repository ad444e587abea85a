"""Sixty-four clients on eight GPUs: what the manager takes, and what the others' figures are then."""

from functools import partial

from bench.figures import busy_percent, hand_overs_ns, percentile, worst_share_error_percent
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.node.shares import STEP_NS
from bench.report import Row, Target
from bench.stage import Client, Run
from edgeshare.contract.units import NS_PER_S, NS_PER_US

GPUS = 8
CLIENTS = 8
"""On each GPU."""

REQUEST_PERCENT = 12
KERNELS = "1000"
SETTLE_NS = 2 * NS_PER_S

CPU_TARGET = Target(15)
SHARE_TARGET = Target(1.0)
KEPT_TARGET = Target(98, at_least=True)
HAND_OVER_TARGET = Target(40)
"""The last three: twice what may be missed with two clients."""


def measurements(effort: Effort) -> list[Measurement]:
    """One for each scheduling."""
    return [
        Measurement(f"{GPUS * CLIENTS} clients on {GPUS} GPUs, {scheduling}", partial(measure, effort, scheduling))
        for scheduling in SCHEDULINGS
    ]


def measure(effort: Effort, scheduling: str, bench: Bench) -> list[Row]:
    """All saturated; once with one client a GPU and no hook."""
    laboratory = bench.laboratory(scheduling, GPUS)
    runs = [laboratory.run(clients(), effort.crowd_s) for _ in range(effort.crowd_runs)]
    bare_percent = mean_busy_percent(laboratory.run(bare_clients(), effort.crowd_s))
    settings: dict[str, str | float] = {
        "clients": GPUS * CLIENTS,
        "GPUs": GPUS,
        "kernels": "1 ms",
        "scheduling": scheduling,
    }
    kept = [mean_busy_percent(run) for run in runs]
    return [
        Row(
            "manager's processor time",
            "% of a core",
            [run.manager_cpu_percent for run in runs],
            settings,
            target=CPU_TARGET,
            note=f"{median_hand_overs_per_s(runs):.0f} hand-overs a second",
        ),
        Row(
            "throughput kept",
            "%",
            [100 * of_one / bare_percent for of_one in kept],
            settings,
            with_edgeshare=kept,
            without_edgeshare=[bare_percent],
            target=KEPT_TARGET,
            note="without: one client a GPU with no hook",
        ),
        Row("share error", "points", [worst_error_percent(run) for run in runs], settings, target=SHARE_TARGET),
        Row(
            "hand-over, p50",
            "us",
            [percentile(hand_overs_us(run), 50) for run in runs],
            settings,
            target=HAND_OVER_TARGET,
        ),
    ]


def clients() -> list[Client]:
    """As many on each GPU."""
    return [
        Client(f"client-{gpu}-{number}", KERNELS, REQUEST_PERCENT, gpu=gpu)
        for number in range(CLIENTS)
        for gpu in range(GPUS)
    ]


def bare_clients() -> list[Client]:
    """One on each GPU, with no hook: what this machine's cores can keep busy."""
    return [Client(f"bare-{gpu}", KERNELS, gpu=gpu, arguments=("--device", str(gpu))) for gpu in range(GPUS)]


def mean_busy_percent(run: Run) -> float:
    return sum(busy_percent(executed, run.begin_ns + SETTLE_NS, run.end_ns) for executed in run.executed) / GPUS


def hand_overs_us(run: Run) -> list[float]:
    """Of all GPUs."""
    begin_ns = run.begin_ns + SETTLE_NS
    return [ns / NS_PER_US for executed in run.executed for ns in hand_overs_ns(executed, begin_ns, run.end_ns)]


def median_hand_overs_per_s(runs: list[Run]) -> float:
    return percentile(
        [len(hand_overs_us(run)) * NS_PER_S / (run.end_ns - run.begin_ns - SETTLE_NS) for run in runs], 50
    )


def worst_error_percent(run: Run) -> float:
    """Of the GPU whose worst client is furthest from its part of what was executed."""
    begin_ns = run.begin_ns + SETTLE_NS
    return max(
        worst_share_error_percent(
            executed,
            {f"client-{gpu}-{number}": 100 / CLIENTS for number in range(CLIENTS)},
            begin_ns,
            run.end_ns,
            window_ns=(run.end_ns - begin_ns) // STEP_NS * STEP_NS,
            step_ns=STEP_NS,
            of_executed=True,
        )
        for gpu, executed in enumerate(run.executed)
    )
