"""What the hook adds to a launch while the slice is held."""

import json
from functools import partial

from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from simgpu.native import BURN

TARGET = Target(25)

KERNEL_US = 1
"""Short, so that a batch of launches is executed soon: what is timed is the call."""


def measurements(effort: Effort) -> list[Measurement]:
    """One: launches cost the host the same, however the GPU orders them."""
    return [Measurement("added time per launch", partial(measure, effort, SCHEDULINGS[0]))]


def measure(effort: Effort, scheduling: str, bench: Bench) -> list[Row]:
    """Alternates programs with and without the hook."""
    laboratory = bench.laboratory(scheduling)
    argv = [str(BURN), "--launches", str(effort.launches), "--kernel-us", str(KERNEL_US), "--json"]
    hooked, bare = [], []
    for _ in range(effort.launch_runs):
        bare.append(float(json.loads(laboratory.last_line("bare", argv, None))["median_launch_ns"]))
        hooked.append(float(json.loads(laboratory.last_line("hooked", argv, 100))["median_launch_ns"]))
    return [
        Row(
            "added time per launch",
            "ns",
            [with_hook - without for with_hook, without in zip(hooked, bare, strict=True)],
            {"client": "alone"},
            with_edgeshare=hooked,
            without_edgeshare=bare,
            target=TARGET,
        )
    ]
