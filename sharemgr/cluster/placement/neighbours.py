"""What profiles tell of those who have parts of each GPU, as arrays beside the table's, and of who asks for one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state.nodes import Use
from sharemgr.cluster.state.profiles import Profile

KERNEL_MAX_US = 1e9
"""A profile that says more than a quarter of an hour is taken to say this."""


@dataclass(frozen=True, slots=True)
class Habits:
    """What matters to others of a program on a model of device. Whatever its profile says, these are numbers that can
    be."""

    demand_units: float
    """GPU time that it would use if nobody kept it waiting, in hundredths of one GPU's: 100 of a program that saturates
    the GPU, less of one that comes in bursts."""
    kernel_us: float
    """How long one of its kernels takes, the median; 0: not known."""
    longest_kernel_us: float

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Of who was kept waiting it is taken that he would have gone on as he did when he was not."""
        used, waited = (_within(part, UNITS_PER_DEVICE) for part in (profile.gpu_percent, profile.waited_percent))
        demand_units = UNITS_PER_DEVICE * min(1.0, used / max(UNITS_PER_DEVICE - waited, 1.0))
        kernel_us, longest_us = (
            _within(us, KERNEL_MAX_US) for us in (profile.kernel_p50_us, profile.kernel_longest_us)
        )
        return cls(demand_units, kernel_us, longest_us)


def _within(number: float, most: float) -> float:
    """The nearest to it that can be; of what is no number, 0."""
    return min(number, most) if number > 0 else 0.0


@dataclass(slots=True)
class Neighbours:
    """Who has parts of the GPUs of some nodes. All are numbers for node × GPU, as of when the node last changed."""

    demand_units: NDArray[np.float64]
    """The GPU time that all would use if nobody kept them waiting; for one that has no profile, its units."""
    longest_kernel_us: NDArray[np.float64]
    """Of all of them: for so long they may keep everybody out."""
    latency: NDArray[np.float64]
    """How many parts are of the latency class."""

    @classmethod
    def of_nobody(cls, height: int, width: int) -> Self:
        """Nobody on so many nodes, with so many columns."""
        return cls(*(np.zeros((height, width)) for _ in cls.__slots__))

    def pick(self, rows: NDArray[np.int64]) -> "Neighbours":
        """A copy of some nodes."""
        return Neighbours(*(getattr(self, name).take(rows, axis=0) for name in Neighbours.__slots__))

    def grown(self, height: int, width: int) -> "Neighbours":
        """A copy with room for more."""
        return Neighbours(
            *(
                np.pad(old, ((0, height - len(old)), (0, width - old.shape[1])))
                for old in (getattr(self, name) for name in Neighbours.__slots__)
            )
        )

    def clear(self, row: int) -> None:
        """Nobody is on that node."""
        for name in Neighbours.__slots__:
            getattr(self, name)[row] = 0

    def write(self, row: int, place: int, use: Use, profiles: Mapping[str, Profile]) -> None:
        """Who has parts of a GPU of which nobody's were written; the profiles are those on its model."""
        demand_units, longest_us, latency = float(use.units), 0.0, 0
        for (program, units), parts in use.programs.items():
            latency += parts * program.latency
            profile = profiles.get(program.key)
            if profile is not None:
                habits = Habits.of(profile)
                demand_units += parts * (habits.demand_units - units)
                longest_us = max(longest_us, habits.longest_kernel_us)
        self.demand_units[row, place] = demand_units
        self.longest_kernel_us[row, place] = longest_us
        self.latency[row, place] = latency

    def bytes_of(self, row: int) -> bytes:
        """What is known of a row as bytes, equal where all of it is equal."""
        return b"".join(getattr(self, name)[row].tobytes() for name in Neighbours.__slots__)


@dataclass(frozen=True, slots=True)
class Known:
    """What profiles tell of an ask: of who asks, by model, and of who is at each of its options."""

    latency: bool
    """Whether who asks is of the latency class."""
    demand_units: NDArray[np.float64]
    """By model: see Habits; without a profile, the units that it asks of each GPU."""
    kernel_us: NDArray[np.float64]
    """By model; 0: not known."""
    longest_kernel_us: NDArray[np.float64]
    """By model; 0: not known."""
    neighbours: Neighbours
    """Of each of the options."""
