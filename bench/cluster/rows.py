"""What is told of a cluster's scheduler with an extender and without. Pure."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.cluster.scrapes import Times
from bench.figures import within
from bench.report import Row, Target


@dataclass(frozen=True)
class Run:
    """What one gave."""

    pods_a_second: float
    processor_ms: Mapping[str, float]
    """A pod, by process, from a tenth of the Bindings to the last."""
    bindings: Times
    """How long the API server took to answer them."""


def rate_apart(run: Run, extender: str) -> float:
    """Pods bound a second if the extender took none of the processors' time: all of them are busy throughout, and what
    it has used is left to the others in equal parts."""
    saved_s = run.processor_ms[extender] / 1000 / (os.cpu_count() or 1)
    return 1 / (1 / run.pods_a_second - saved_s)


def rate_row(
    figure: str, settings: Mapping[str, str | float], rates: Sequence[float], bare: Sequence[float], least: float
) -> Row:
    """Rates over those of the neighbouring runs without."""
    ratios = [each / alone for each, alone in zip(rates, bare, strict=True)]
    return Row(figure, "", ratios, settings, rates, bare, Target(least, at_least=True))


def total(of: Iterable[Times]) -> Times:
    """Several runs' as one."""
    found: Counter[float] = Counter()
    for each in of:
        found.update(each)
    return found


def verb_rows(verbs: Mapping[str, Times], settings: Mapping[str, str | float]) -> list[Row]:
    """How long the assigner took for each of its verbs."""
    return [
        Row(f"{verb}, {name}", "ms", [1000 * within(times, share)], settings, target=target)
        for verb, times in verbs.items()
        for name, share, target in (("p50", 0.5, None), ("p99", 0.99, Target(10)))
    ]


def binding_rows(with_it: Times, without: Times, settings: Mapping[str, str | float]) -> list[Row]:
    """How long the API server took for a Binding: bind's floor."""
    rows = []
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        used, alone = ([1000 * within(times, share)] for times in (with_it, without))
        rows.append(Row(f"the API server's answer to a Binding, {name}", "ms", used, settings, used, alone))
    return rows
