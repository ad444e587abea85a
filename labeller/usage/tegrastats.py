"""What a line of NVIDIA's ``tegrastats`` says, whichever release of Jetson Linux printed it.

The forms differ from release to release and from board to board, so each reading is looked for by itself, and what is
not known is passed over. Recorded lines, and where they stand:

- Android and TK1 (R21), TX1 (R24): ``cpu [1%,2%]@1912 EMC 0%@1600 AVP 5%@115 VDE 0 GR3D 0%@76 EDP limit 1912``
  (hordiales/jetson-tx1-dev, SCRIPTS.md; Android's own readme of the tool)
- R27 to R32: ``GR3D_FREQ 0%@114``, without root ``GR3D_FREQ 0%``; ``MTS fg 0% bg 0%``; ``GPU@39C``; rails in milliwatts
  without a unit, now and on average: ``VDD_SYS_GPU 152/152``, ``POM_5V_GPU 0/0``, on an AGX Xavier ``GPU 0/0``
  (DataDog/datadog-agent, tegrastats_test.go; rbonghi/jetson_stats, tegra_parse.py)
- R34 to R36: the time in front; ``GR3D_FREQ 0%@305 GR3D2_FREQ 0%@0``, later ``0%@[0,0]``; engines ``NVENC 79%@166``,
  ``NVDEC off``; ``VDD_GPU_SOC 2412mW/2412mW``; ``CV0@-256C`` where nothing is powered (lesomnus/tegra-exporter,
  parse_test.go)
- R38, R39: ``GR3D_FREQ @[314,314,314]`` (Thor: no load, and without root nothing at all), ``0%@[1300,1300]`` (Orin);
  ``NVENC0_FREQ @314``; ``gpu@56.937C/66.625C``: now and at most; ``VDD_GPU 379mW/86mW/379mW``: now, mean, most;
  a calibration may make it negative (rbonghi/jetson_stats, pull request 894; wendylabsinc/WendyOS, pull request 1316)

What the fields mean: NVIDIA, "Jetson Linux Developer Guide", Tegrastats Utility.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

Number = TypeVar("Number", int, float)

LINE_BYTES_MAX = 4096
"""A line of Thor's, with 14 processors and all engines, has some 700."""

MEMORY = re.compile(rb"(?<!\S)RAM ([0-9]{1,8})/([0-9]{1,8})MB(?!\S)")
LOAD = re.compile(
    rb"(?<!\S)([A-Za-z][A-Za-z0-9_]{0,31}) (?:([0-9]{1,3})%(?=[@\s]|\Z)|\[([0-9%,]{1,64})\]@|([Oo][Ff][Ff])(?!\S))"
)
TEMPERATURE = re.compile(
    rb"(?<!\S)([A-Za-z][A-Za-z0-9_-]{0,31})@(-?[0-9]{1,3}(?:\.[0-9]{1,3})?)C(?:/-?[0-9.]{1,8}C)?(?!\S)"
)
POWER = re.compile(
    rb"(?<!\S)([A-Za-z][A-Za-z0-9_]{0,31}) (-?[0-9]{1,7})"
    rb"(?:mW(?:/-?[0-9]{1,7}(?:mW)?){0,2}|(?:/-?[0-9]{1,7}(?:mW)?){1,2})(?!\S)"
)
"""None of these four makes something else of a line that was cut off: then a reading is missing."""

NO_ENGINES = frozenset({"CPU", "FG", "BG"})
"""What has a load and accelerates nothing: processors, and what the MTS does in front and behind."""

UNPOWERED_C = -256
"""What a sensor says whose part of the chip has no power."""

NO_SENSORS = frozenset({"pmic"})
"""Every recorded line has 50 or 100 there: a threshold, no measurement."""

NO_RAILS = frozenset({"NC", "RAM", "SWAP", "IRAM", "Carveout", "GART"})
"""A rail that is not connected; and memories, which look like rails in a line that ends before their unit."""


@dataclass(frozen=True)
class Sample:
    """What a line says. None, or nothing, where it does not."""

    memory_used_mib: int
    """Of the machine, which its GPU shares."""
    memory_total_mib: int
    gpu_load_percent: float | None = None
    engine_load_percent: Mapping[str, float] = field(default_factory=dict)
    """By name (``EMC``, ``NVENC``, ``PVA0``), the GPU not among them."""
    temperature_c: Mapping[str, float] = field(default_factory=dict)
    """By thermal zone, in small letters: releases differ in that alone."""
    rail_mw: Mapping[str, int] = field(default_factory=dict)
    """By power rail, as the board calls it; now, not on average."""


def parse(line: bytes) -> Sample | None:
    """What a line says; None for one that is not of ``tegrastats``: each of its lines tells of the memory."""
    memory = MEMORY.search(line) if len(line) <= LINE_BYTES_MAX else None
    if memory is None:
        return None
    used_mib, total_mib = int(memory[1]), int(memory[2])
    if used_mib > total_mib:
        return None
    loads = _first(_loads(line))
    return Sample(
        memory_used_mib=used_mib,
        memory_total_mib=total_mib,
        gpu_load_percent=loads.get("GR3D"),
        # GR3D2 is the GPU's second half, with the load of the first.
        engine_load_percent={name: load for name, load in loads.items() if not name.startswith("GR3D")},
        temperature_c=_first(_temperatures(line)),
        rail_mw=_first(_rails(line)),
    )


def _loads(line: bytes) -> Iterable[tuple[str, float]]:
    for name, percent, several, off in LOAD.findall(line):
        engine = name.decode().upper().removesuffix("_FREQ")
        parts = [int(part) for part in (percent, *several.replace(b"%", b"").split(b",")) if part]
        if off:
            parts = [0]
        if engine not in NO_ENGINES and parts and max(parts) <= 100:
            yield engine, sum(parts) / len(parts)


def _temperatures(line: bytes) -> Iterable[tuple[str, float]]:
    for name, celsius in TEMPERATURE.findall(line):
        zone = name.decode().lower()
        if zone not in NO_SENSORS and float(celsius) > UNPOWERED_C:
            yield zone, float(celsius)


def _rails(line: bytes) -> Iterable[tuple[str, int]]:
    for name, milliwatts in POWER.findall(line):
        rail = name.decode()
        if rail not in NO_RAILS:
            yield rail, int(milliwatts)


def _first(pairs: Iterable[tuple[str, Number]]) -> dict[str, Number]:
    """The first of each name: what is there twice cannot be told apart."""
    found: dict[str, Number] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found
