"""What the request shapes seen make of free units: how many of them the next pod can use, at which price, and how many
the cores and the RAM beside them are enough for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.rows import Floats, Ints
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.eligibility import is_model
from sharemgr.cluster.state.request import Ask

PER_UNIT_MIN = 1e-3
"""Millicores or MiB of RAM; of a pod that asks for none, so that one can divide by it."""

ALMOST_NONE = 1e-9
"""Free units, instead of none, to divide by."""


class Shape(NamedTuple):
    """A kind of request: that of one container, with its part of its pod's CPU."""

    ask: Ask
    cpu_milli: int
    models: frozenset[str]
    """The GPU models that will do; empty: any."""


@dataclass(slots=True)
class Seen:
    """How often a shape came, and with how much RAM in all."""

    pods: float = 0
    ram_mib: float = 0


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many millicores (or MiB of RAM) go with a unit, over all units asked for."""

    per_unit: Floats
    """Ascending, one for each shape."""
    below: Floats
    """The part of all units asked for, of the shapes before each place."""
    beyond: Floats
    """The sum of part / ratio, of the shapes from each place on."""

    def usable_units(self, free_units: Ints, left: Ints) -> Floats:
        """How many of the free units can be used with what is ``left`` of the other, in the mean over the units asked
        for: each shape by itself would use up the one or the other."""
        place = np.searchsorted(self.per_unit, left / np.maximum(free_units, ALMOST_NONE), side="right")
        usable: Floats = free_units * self.below[place] + left * self.beyond[place]
        return usable


@dataclass(frozen=True, slots=True)
class Worth:
    """What free units are worth, by the shapes that can use them."""

    one: Floats
    """model × CPU level × units: what so many free units of one GPU are worth to the pods of one GPU; the node has as
    many millicores left as the level says."""
    many: Floats
    """model × CPU level × idle GPUs: what these are worth to the pods of several GPUs."""

    def of_gpus(self, model: Ints, level: Ints, units: Ints) -> Floats:
        """node × GPU: see ``one``."""
        return _look_up(self.one, model, level, units)

    def of_idle(self, model: Ints, level: Ints, idle: Ints) -> Floats:
        """node × GPU: see ``many``. All idle GPUs of a node are taken to be of the column's model."""
        return _look_up(self.many, model, level, np.minimum(idle, self.many.shape[2] - 1))


@dataclass(frozen=True, slots=True)
class Demand:
    """All that the shapes say."""

    cpu_levels: Ints
    """Millicores that shapes ask for, ascending."""
    plain: Worth
    """In units that the next pod can use, in the mean over the pods seen."""
    priced: Worth
    """In units that the next pod can use, each shape times its price: all free units over those that it can use."""
    cpu: Ratio
    ram: Ratio

    def level(self, cpu_milli: Ints) -> Ints:
        """node: how many of the levels so many millicores reach."""
        return np.searchsorted(self.cpu_levels, cpu_milli, side="right")


def weigh(shapes: Mapping[Shape, Seen], table: Table) -> Demand:
    """What these shapes say of what is free in the table."""
    levels = np.array(sorted({shape.cpu_milli for shape in shapes}), np.int64)
    most = max((shape.ask.devices for shape in shapes), default=1)
    size = (len(table.models), len(levels) + 1)
    plain, priced = (Worth(np.zeros((*size, UNITS_PER_DEVICE + 1)), np.zeros((*size, most + 1))) for _ in range(2))
    level_of = {cpu_milli: place + 1 for place, cpu_milli in enumerate(levels.tolist())}
    free = _Free(table, levels)
    pods = sum(seen.pods for seen in shapes.values())
    for shape, seen in shapes.items():
        level = level_of[shape.cpu_milli]
        fitting = _fitting(shape, table)
        part = seen.pods / pods
        price = free.units / max(free.usable_units(shape, level, fitting), units_of(shape))
        for model, units in fitting.items():
            if shape.ask.devices == 1:
                plain.one[model, level, units] += part
                priced.one[model, level, units] += part * price
            else:
                plain.many[model, level, shape.ask.devices] += part
                priced.many[model, level, shape.ask.devices] += part * price
    for worth in (plain, priced):
        _sum_up(worth.one, 1)
        _sum_up(worth.many, UNITS_PER_DEVICE)
    asked = [seen.pods * units_of(shape) for shape, seen in shapes.items()]
    cpu = _ratio([shape.cpu_milli / units_of(shape) for shape in shapes], asked)
    ram = _ratio([seen.ram_mib / units for seen, units in zip(shapes.values(), asked, strict=True)], asked)
    return Demand(levels, plain, priced, cpu, ram)


def units_of(shape: Shape) -> int:
    """Of all its devices together."""
    return shape.ask.devices * shape.ask.units


class _Free:
    """What is free in a table, by model, CPU level and units, so that one look tells what a shape can use."""

    def __init__(self, table: Table, levels: Ints) -> None:
        rows = table.rows
        usable = rows.usable_units()
        level = np.searchsorted(levels, rows.cpu_milli, side="right")
        size = (len(table.models), len(levels) + 1)
        self.units = float(usable.sum())
        self._units = _from_the_top(
            _histogram((rows.model, level[:, None], usable), (*size, UNITS_PER_DEVICE + 1), usable), (1, 2)
        )
        idle = rows.idle()
        self._idle = _from_the_top(_histogram((rows.model[:, 0], level, idle), (*size, rows.model.shape[1] + 1)), (1,))

    def usable_units(self, shape: Shape, level: int, fitting: Mapping[int, int]) -> float:
        """Free units that pods of this shape can use: those of GPUs that can hold one, or of as many idle GPUs of a
        node as make up whole pods."""
        devices = shape.ask.devices
        if devices == 1:
            return float(sum(self._units[model, level, units] for model, units in fitting.items()))
        used = np.arange(self._idle.shape[2]) // devices * devices * UNITS_PER_DEVICE
        return float(sum(self._idle[model, level] @ used for model in fitting))


def _histogram(place: tuple[Ints, Ints, Ints], size: tuple[int, int, int], weights: Ints | None = None) -> Floats:
    # As add.at, in a fraction of the time.
    flat, parts = np.broadcast_arrays(np.ravel_multi_index(place, size), 1 if weights is None else weights)
    found = np.bincount(flat.ravel(), parts.ravel(), size[0] * size[1] * size[2])
    return found.reshape(size).astype(np.float64)


def _from_the_top(histogram: Floats, axes: tuple[int, ...]) -> Floats:
    """Each place, and all above it."""
    for axis in axes:
        histogram = np.flip(np.flip(histogram, axis).cumsum(axis), axis)
    return histogram


def _sum_up(worth: Floats, units: int) -> None:
    """From the parts of pods at the level and the size that they need, to what there is worth at each."""
    worth[:] = worth.cumsum(axis=1).cumsum(axis=2) * (np.arange(worth.shape[2]) * units)


def _fitting(shape: Shape, table: Table) -> dict[int, int]:
    """The models that will do, and the units that the shape uses up of each, be it by its memory."""
    fitting = {}
    for index, model in enumerate(table.models):
        by_memory = -(-shape.ask.memory_mib * UNITS_PER_DEVICE // model.memory_mib) if model.memory_mib else 0
        units = max(shape.ask.units, by_memory)
        if is_model(shape.models, model.name) and units <= UNITS_PER_DEVICE:
            fitting[index] = units
    return fitting


def _ratio(per_unit: Sequence[float], asked: Sequence[float]) -> Ratio:
    """Of each shape what goes with a unit, and all its units."""
    order = np.argsort(per_unit, kind="stable")
    ratios = np.maximum(np.array(per_unit)[order], PER_UNIT_MIN)
    parts = np.array(asked)[order] / max(sum(asked), 1)
    below = np.concatenate(([0.0], parts.cumsum()))
    beyond = np.concatenate((np.flip(np.flip(parts / ratios).cumsum()), [0.0]))
    return Ratio(ratios, below, beyond)


def _look_up(table: Floats, model: Ints, level: Ints, last: Ints) -> Floats:
    """As ``table[model, level, last]``, in half the time."""
    _, levels, width = table.shape
    found: Floats = table.ravel().take(model * (levels * width) + (level * width)[:, None] + last)
    return found
