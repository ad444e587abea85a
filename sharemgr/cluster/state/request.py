"""What a pod asks of a node, and what it was given."""

from collections.abc import Iterator
from typing import NamedTuple

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.units import UNITS_PER_DEVICE, memory_cap_mib

ORDERS_MAX = 24
"""Of placing a pod's asks: all there are of four."""


class Ask(NamedTuple):
    """Devices of one kind, of one container."""

    devices: int
    units: int
    """Of each device, 1 to 100; below 100 only of one device."""
    memory_mib: int = 0
    """Of each device; 0: the same part of its memory as of its units."""
    kind: Accelerator = Accelerator.GPU

    @property
    def is_whole(self) -> bool:
        """Whether it is of whole devices, which are shared with nobody."""
        return self.units == UNITS_PER_DEVICE

    def needed_mib(self, total_mib: int) -> int:
        """What it takes of the memory of a device that has so much."""
        return memory_cap_mib(self.memory_mib, total_mib, self.units)


class Program(NamedTuple):
    """What a pod runs, as far as it is known before it does."""

    key: str = ""
    """Of its profiles (profiles.py); empty: not known."""
    latency: bool = False
    """Whether its pod is of the latency class."""


UNKNOWN = Program()


class Request(NamedTuple):
    """All that a pod asks for."""

    asks: tuple[Ask, ...]
    """One for each container that has devices, and for each kind of these: those of a kind one after the other. None
    for a pod without any."""
    cpu_milli: int = 0
    ram_mib: int = 0
    models: frozenset[str] = frozenset()
    """The GPU models that will do; empty: any."""
    affinity: str = ""
    """Pods of one affinity share a GPU; empty: with whom does not matter."""
    exclusion: str = ""
    """A GPU holds only pods of one exclusion; none is one, too."""
    program: Program = UNKNOWN
    """One for all its containers."""

    @property
    def units(self) -> int:
        """Of all its devices together."""
        return sum(ask.devices * ask.units for ask in self.asks)

    @property
    def kind(self) -> Accelerator:
        """Of its first ask, and of all asks of one of the ``parts``."""
        return self.asks[0].kind

    @property
    def parts(self) -> tuple["Request", ...]:
        """What it asks of each kind of device, with the cores and RAM of the whole pod; none where it asks for none."""
        if not self.asks:
            return ()
        first, last = self.asks[0].kind, self.asks[-1].kind
        if first is last and KINDS[first].is_chosen_by_wish:
            return (self,)
        return tuple(self._of(kind) for kind in dict.fromkeys(ask.kind for ask in self.asks))

    def _of(self, kind: Accelerator) -> "Request":
        asks = tuple(ask for ask in self.asks if ask.kind is kind)
        if KINDS[kind].is_chosen_by_wish:
            return self._replace(asks=asks)
        return Request(asks, self.cpu_milli, self.ram_mib)

    def orders(self) -> Iterator[tuple[int, ...]]:
        """Orders in which its asks, all of one kind, may be placed, as their numbers: the largest first to begin with,
        then others.

        Where all fit on devices that are alike, there is an order in which each fits on the first device that has room
        for it: those of the first device, then those of the second, and so on. (One that fits on an earlier device
        leaves more of its own to the others.)
        """
        kinds = sorted(dict.fromkeys(self.asks), key=lambda ask: -ask.devices * ask.units)
        rank = [kinds.index(ask) for ask in self.asks]
        order = sorted(range(len(rank)), key=rank.__getitem__)
        last = len(order) - 1
        for _ in range(ORDERS_MAX):
            yield tuple(order)
            # The next in which not only equal ones change places (Knuth, TAOCP 7.2.1.2, algorithm L).
            rises = (place for place in range(last - 1, -1, -1) if rank[order[place]] < rank[order[place + 1]])
            place = next(rises, None)
            if place is None:
                return
            other = next(each for each in range(last, place, -1) if rank[order[each]] > rank[order[place]])
            order[place], order[other] = order[other], order[place]
            order[place + 1 :] = reversed(order[place + 1 :])


class Take(NamedTuple):
    """What a container has of one device."""

    device_id: str
    units: int
    memory_mib: int
    kind: Accelerator = Accelerator.GPU

    def and_as_much(self, units: int, memory_mib: int) -> "Take":
        """With so much more of the same device."""
        return Take(self.device_id, self.units + units, self.memory_mib + memory_mib, self.kind)


class Holding(NamedTuple):
    """What a pod has of its node."""

    uid: str
    node: str
    takes: tuple[Take, ...]
    cpu_milli: int = 0
    ram_mib: int = 0
    affinity: str = ""
    """As it was requested."""
    exclusion: str = ""
    program: Program = UNKNOWN

    def labelled(self, like: "Request | Holding") -> "Holding":
        """This holding with the affinity, exclusion and program of ``like``: a node that lists it knows of none."""
        if (self.affinity, self.exclusion, self.program) == (like.affinity, like.exclusion, like.program):
            return self
        return self._replace(affinity=like.affinity, exclusion=like.exclusion, program=like.program)
