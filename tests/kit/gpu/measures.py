"""What is measured on a GPU. Each function runs workloads in a lab and returns the rows that it found.

Shares are judged by throughput: what part of its throughput alone, without edgeshare, a program keeps beside the other.
The parts of two programs add up to the throughput kept. No tool looks into the GPU meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.hook.paired import build
from tests.kit.gpu.lab import Job, Lab


@dataclass(frozen=True)
class Timing:
    """How long is looked."""

    settle_s: float = 2.0
    measure_s: float = 10.0


@dataclass(frozen=True)
class Row:
    """One figure; ``without`` is the same without edgeshare."""

    what: str
    programs: str
    value: float
    unit: str
    without: float | None = None


def rate(answer: Mapping[str, Any]) -> float:
    """Steps a second."""
    return float(answer["steps"]) / float(answer["seconds"])


def shares(lab: Lab, framework: str, kind: str, timing: Timing, percents: tuple[int, int] = (70, 30)) -> list[Row]:
    """Two training loops side by side: the first one's part of what both did, and the throughput kept."""
    arguments = ("--kind", kind)
    programs = f"{framework} {kind}"
    seconds = timing.settle_s, timing.measure_s
    (alone,) = lab.side_by_side([Job(framework, "train", arguments)], *seconds)
    (hooked,) = lab.side_by_side([Job(framework, "train", arguments, percents[0])], *seconds)
    free = lab.side_by_side([Job(framework, "train", arguments)] * 2, *seconds)
    shared = lab.side_by_side([Job(framework, "train", arguments, percent) for percent in percents], *seconds)
    rows = [
        Row(f"share of {percents[0]} %", programs, _first_percent(shared), "%", _first_percent(free)),
        Row("throughput kept by two", programs, _kept(shared, alone), "%", _kept(free, alone)),
        Row("throughput kept alone", programs, 100 * rate(hooked) / rate(alone), "%"),
    ]
    if alone["step_ms"] is not None:
        # What the GPU was given, by its own time for a step when nobody disturbs it.
        busy = sum(rate(each) * alone["step_ms"] for each in shared) / 10
        rows.append(Row("GPU time used by two", programs, busy, "%", sum(map(rate, free)) * alone["step_ms"] / 10))
    return rows


def _first_percent(pair: list[dict[str, Any]]) -> float:
    return 100 * rate(pair[0]) / (rate(pair[0]) + rate(pair[1]))


def _kept(pair: list[dict[str, Any]], alone: Mapping[str, Any]) -> float:
    return 100 * sum(map(rate, pair)) / rate(alone)


def tails(lab: Lab, framework: str, timing: Timing, every_ms: float = 50.0) -> list[Row]:
    """Requests at fixed times, 30 % in the latency class, beside a training loop of 70 %: the 99th percentile."""
    asked = ("--every-ms", str(every_ms))
    seconds = timing.settle_s, timing.measure_s
    programs = f"{framework} serves beside {framework} trains"
    (alone,) = lab.side_by_side([Job(framework, "serve", asked)], *seconds)
    (hooked,) = lab.side_by_side([Job(framework, "serve", asked, 30, latency=True)], *seconds)
    free, _ = lab.side_by_side([Job(framework, "serve", asked), Job(framework, "train")], *seconds)
    jobs = [Job(framework, "serve", asked, 30, latency=True), Job(framework, "train", percent=70)]
    shared, _ = lab.side_by_side(jobs, *seconds)
    return [
        Row("p99 of a request, alone", programs, hooked["p99_ms"], "ms", alone["p99_ms"]),
        Row("p99 of a request, beside training", programs, shared["p99_ms"], "ms", free["p99_ms"]),
        Row("p50 of a request, beside training", programs, shared["p50_ms"], "ms", free["p50_ms"]),
        Row("requests served beside training", programs, 100 * rate(shared) / rate(alone), "%"),
    ]


def launches(lab: Lab, pairs: int) -> list[Row]:
    """Batches of launches through the hook and past it take turns in one process, alone on the GPU."""
    lines = lab.printed([str(build("launch.c", lab.folder)), str(pairs), "1"], 99).splitlines()
    times_ns = [(float(front), float(past)) for front, past in map(str.split, lines)]
    hooked, bare = (median(column) for column in zip(*times_ns, strict=True))
    return [
        Row("time added to a launch, slice held", "C", median(front - past for front, past in times_ns), "ns"),
        Row("time of a launch", "C", hooked, "ns", bare),
    ]


def cap(lab: Lab, framework: str, memory_mib: int, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a program that takes all it can get under a cap says."""
    return lab.once(Job(framework, "fill", percent=50, memory_mib=memory_mib, variables=variables or {}))


def sums(lab: Lab, framework: str, kind: str) -> tuple[float, float]:
    """What the same steps compute without edgeshare and with it."""
    arguments = ("--kind", kind)
    bare = lab.once(Job(framework, "check", arguments))
    hooked = lab.once(Job(framework, "check", arguments, 50))
    return float(bare["checksum"]), float(hooked["checksum"])
