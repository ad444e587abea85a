"""What is free of nodes, one row each: in plain numbers, and as arrays, as the policies read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state.eligibility import NOBODY

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

UNLIMITED = 1 << 40
"""Millicores or MiB of RAM of a node of which they are not known."""

NO_NODE = -1
"""Millicores of a row without a node: it holds nothing, not even a pod that asks for nothing."""


class Gpu(NamedTuple):
    """What is free of one, each number as ``Rows`` has it."""

    free_units: int
    free_mib: int
    total_mib: int
    model: int
    exclusion: int


NO_GPU = Gpu(0, 0, 0, 0, NOBODY)
"""Of a column that a node has no GPU for."""


class Row(NamedTuple):
    """What is free of one node."""

    gpus: tuple[Gpu, ...]
    """As many as it has."""
    cpu_milli: int
    ram_mib: int
    beside_whom: bytes = b""
    """What is known of its neighbours."""


NO_ROW = Row((), NO_NODE, 0)
"""Of a node that is gone."""


@dataclass(slots=True)
class Rows:
    """What is free of some nodes. Where a node has fewer GPUs than columns, or one is not healthy, nothing is free."""

    free_units: Ints
    """node × GPU"""
    free_mib: Ints
    """node × GPU"""
    total_mib: Ints
    """node × GPU; 0 where memory is not shared out"""
    model: Ints
    """node × GPU: a place in the table's list of models"""
    exclusion: Ints
    """node × GPU: a place among the table's exclusions, NOBODY or SEVERAL"""
    cpu_milli: Ints
    """node"""
    ram_mib: Ints
    """node"""

    @classmethod
    def of_none(cls, height: int, width: int) -> Self:
        """Rows without a node, ``height`` of them, ``width`` columns each."""
        free_units, free_mib, total_mib, model, exclusion = (
            np.full((height, width), number, np.int64) for number in NO_GPU
        )
        return cls(
            free_units,
            free_mib,
            total_mib,
            model,
            exclusion,
            np.full(height, NO_ROW.cpu_milli, np.int64),
            np.full(height, NO_ROW.ram_mib, np.int64),
        )

    def grown(self, height: int, width: int) -> "Rows":
        """A copy with room for more."""
        grown = Rows.of_none(height, width)
        for name in Rows.__slots__:
            old = getattr(self, name)
            getattr(grown, name)[tuple(map(slice, old.shape))] = old
        return grown

    def write(self, index: Sequence[int], rows: Sequence[Row], which: Sequence[int]) -> None:
        """Row ``index[n]`` is ``rows[which[n]]`` now: of many rows few differ."""
        there = np.array(which)
        gpus = np.full((len(rows), self.free_units.shape[1], len(NO_GPU)), NO_GPU, np.int64)
        for place, row in enumerate(rows):
            if row.gpus:
                gpus[place, : len(row.gpus)] = row.gpus
        for place, name in enumerate(Gpu._fields):
            getattr(self, name)[index] = gpus[there, :, place]
        self.cpu_milli[index] = np.array([row.cpu_milli for row in rows], np.int64)[there]
        self.ram_mib[index] = np.array([row.ram_mib for row in rows], np.int64)[there]

    def pick(self, rows: Ints) -> "Rows":
        """A copy of some of them."""
        return Rows(*(getattr(self, name).take(rows, axis=0) for name in Rows.__slots__))

    def usable_units(self) -> Ints:
        """node × GPU: the units for which memory, too, is left in proportion."""
        return usable_units(self.free_units, self.free_mib, self.total_mib)

    def idle(self) -> Ints:
        """node: how many GPUs nobody has a part of."""
        return sum_of_gpus(self.free_units == UNITS_PER_DEVICE)


def sum_of_gpus(numbers: Ints | Bools) -> Ints:
    """node: the sum over its GPUs. As ``sum(axis=1)``, in a tenth of the time: a node has few."""
    found: Ints = np.einsum("ij->i", numbers, dtype=np.int64)
    return found


def usable_units(free_units: Ints, free_mib: Ints, total_mib: Ints) -> Ints:
    """The units for which memory, too, is left in proportion."""
    if not total_mib.any():
        return free_units
    in_proportion = free_mib * UNITS_PER_DEVICE // np.maximum(total_mib, 1)
    return np.where(total_mib > 0, np.minimum(free_units, in_proportion), free_units)
