"""How long the requests of a latency client take beside a client that never stops."""

from contextlib import ExitStack
from functools import partial

from bench.figures import percentile
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import SPARE_S, Client, Laboratory, result
from edgeshare.contract.units import NS_PER_MS
from simgpu.stage.programs import begin_together

PERIOD_US = 50_000
KERNELS = 8
BATCH_KERNEL_MS = 10.0
TARGET = Target(BATCH_KERNEL_MS + 1)

SETTLED_REQUESTS = 20
"""Of one second: until then the batch client's first kernels, queued while it was alone, may run."""

REQUESTS = Client(
    "latency",
    "1000",
    percent=30,
    latency=True,
    arguments=("--mode", "request", "--sync-every", str(KERNELS), "--period-us", str(PERIOD_US)),
)
BATCH = Client("batch", str(round(BATCH_KERNEL_MS * 1_000)), percent=70)


def measurements(effort: Effort) -> list[Measurement]:
    """One for each scheduling."""
    return [
        Measurement(f"latency client, {scheduling}", partial(measure, effort, scheduling)) for scheduling in SCHEDULINGS
    ]


def measure(effort: Effort, scheduling: str, bench: Bench) -> list[Row]:
    """Alone and beside a batch client, in turn."""
    laboratory = bench.laboratory(scheduling)
    alone_ms, beside_ms = [], []
    for _ in range(effort.latency_runs):
        alone_ms.append(percentile(requests_ms(laboratory, effort.latency_s, beside=False), 99))
        beside_ms.append(percentile(requests_ms(laboratory, effort.latency_s, beside=True), 99))
    settings: dict[str, str | float] = {
        "request": f"{KERNELS} x 1 ms each {PERIOD_US // 1_000} ms",
        "batch": "10 ms",
        "scheduling": scheduling,
    }
    return [
        Row(
            "latency client (30 %): p99, more than alone",
            "ms",
            [beside - alone for beside, alone in zip(beside_ms, alone_ms, strict=True)],
            settings,
            with_edgeshare=beside_ms,
            without_edgeshare=alone_ms,
            target=TARGET,
        )
    ]


def requests_ms(laboratory: Laboratory, seconds: float, beside: bool) -> list[float]:
    """How long each request took, of as many as are due in that time."""
    count = str(round(seconds * 1_000_000 / PERIOD_US))
    with ExitStack() as stack:
        argv = [*REQUESTS.argv_told(seconds + SPARE_S), "--requests", count]
        program = stack.enter_context(laboratory.client(REQUESTS, argv))
        rivals = [stack.enter_context(laboratory.client(BATCH, BATCH.argv_told(seconds + SPARE_S)))] if beside else []
        begin_together([program, *rivals])
        taken_ns: list[int] = result(program)["request_ns"]
    return [ns / NS_PER_MS for ns in taken_ns[SETTLED_REQUESTS:]]
