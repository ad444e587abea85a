"""How much of something may be done in a time, or be there: a leaky bucket, places, parts that many share, and in which
order those go on who wait for one."""

from collections import OrderedDict
from collections.abc import Callable

from edgeshare.contract.units import NS_PER_S, UNITS_PER_DEVICE

GUARANTEE_BURST_S = 2
"""So many seconds' worth of what a part is guaranteed may come at once: who starts says more than one that runs."""

PAGES_PER_S = 100_000
"""Where several are let in, the pages of all of a device's clients are read before each event, a microsecond each: so
often in a second those of a node's devices, half of them guaranteed to each device alike. Beyond that what happens
until they can be read again happens at the time at which they were read last. Eight clients and 10,000 events a second,
which are many, come to less."""

CLIENTS_MOST = 4096
"""Of a node: each costs descriptors and memory of its one manager."""

CLIENT_DESCRIPTORS = 4
"""Of one client: its connection, its process, and its two pages, whose maps keep one each."""

OTHER_DESCRIPTORS = 512
"""Left for all else where there are more than twice as many."""


class Budget:
    """``rate`` of it a second on average, and up to ``burst`` at once."""

    __slots__ = ("_burst_ns", "_interval_ns", "_paid_until_ns")

    def __init__(self, rate: int, burst: int) -> None:
        self._interval_ns = NS_PER_S // rate
        self._burst_ns = burst * self._interval_ns
        self._paid_until_ns = 0

    def spend(self, now_ns: int, count: int = 1) -> bool:
        """Does it this often; False where that is more than there was left."""
        self._paid_until_ns = max(self._paid_until_ns, now_ns) + count * self._interval_ns
        return self._paid_until_ns <= now_ns + self._burst_ns

    def wait_ns(self, now_ns: int) -> int:
        """How long it takes until it may be done again; 0: it may."""
        return max(0, self._paid_until_ns - self._burst_ns - now_ns)


class Part:
    """What one of many may do: what it is guaranteed, whatever the others do, and beyond that what none of the others
    took of one budget that they have in common.

    So all of them together do no more than that budget and the sum of what they are guaranteed allow, however many they
    are; and who does no more than it is guaranteed never waits.
    """

    __slots__ = ("_common", "_guaranteed", "_own")

    def __init__(self, own: Budget, guaranteed: Budget, common: Budget) -> None:
        """``own``: the most that it may do, whatever is left of the others."""
        self._own = own
        self._guaranteed = guaranteed
        self._common = common

    def spend(self, now_ns: int, count: int = 1, times: int = 1) -> bool:
        """Does it this often; False where it has to wait before it does more. Of what all have in common it takes so
        many times as much."""
        may = self._own.spend(now_ns, count)
        if not self._guaranteed.wait_ns(now_ns):
            self._guaranteed.spend(now_ns, count)
            return may
        return self._common.spend(now_ns, count * times) and may

    def wait_ns(self, now_ns: int) -> int:
        """How long it takes until it may be done again; 0: it may."""
        shared_ns = min(self._guaranteed.wait_ns(now_ns), self._common.wait_ns(now_ns))
        return max(self._own.wait_ns(now_ns), shared_ns)


class Whole:
    """What all allocations of a node may do together in a second: ``guaranteed`` is divided among them by their units,
    and beyond that they do no more than ``most``, as each of them does by itself."""

    def __init__(self, most: int, burst: int, guaranteed: int, start: int = 0) -> None:
        """``burst``: so often at once, each by itself and all together; ``start``: so often at once each is guaranteed
        it, however few units it has."""
        self._most = most
        self._burst = burst
        self._guaranteed = guaranteed
        self._start = start
        self._common = Budget(most, burst)

    def part(self, units: int, devices: int) -> Part:
        """What an allocation may do that has so many units, of all that so many devices have."""
        rate = max(1, self._guaranteed * units // (devices * UNITS_PER_DEVICE))
        guaranteed = Budget(rate, max(self._start, GUARANTEE_BURST_S * rate))
        return Part(Budget(self._most, self._burst), guaranteed, self._common)


def pages_of_a_node() -> Whole:
    """How often its devices may read pages, of which each has a part."""
    return Whole(PAGES_PER_S, PAGES_PER_S // 4, guaranteed=PAGES_PER_S // 2)


class Queue:
    """Clients that wait for a part that they have in common: they go on one after the other, in the order in which they
    came, each as soon as it has been paid for what the one before it did."""

    __slots__ = ("_call_later", "_least_ns", "_part", "_set", "_waiting")

    def __init__(self, part: Part, least_ns: int, call_later: Callable[[int], None]) -> None:
        """``least_ns``: how long each waits, at least; ``call_later`` has ``go_on`` called after so long."""
        self._part = part
        self._least_ns = least_ns
        self._call_later = call_later
        self._waiting: OrderedDict[int, tuple[int, Callable[[], None]]] = OrderedDict()
        self._set = False  # it is to be called

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, who: int, goes_on: Callable[[], None], now_ns: int) -> None:
        """One has to wait; what it does once it goes on it pays for at once, and it may have to wait again."""
        self._waiting[who] = (now_ns + self._least_ns, goes_on)
        self._call(now_ns)

    def leave(self, who: int) -> None:
        """One waits no more, if it did."""
        self._waiting.pop(who, None)

    def go_on(self, now_ns: int) -> None:
        """Has those go on who may."""
        self._set = False
        try:
            while self._waiting and not self._wait_ns(now_ns):
                _, (_, goes_on) = self._waiting.popitem(last=False)
                goes_on()
        finally:
            self._call(now_ns)

    def _wait_ns(self, now_ns: int) -> int:
        from_ns, _ = next(iter(self._waiting.values()))
        return max(from_ns - now_ns, self._part.wait_ns(now_ns))

    def _call(self, now_ns: int) -> None:
        if self._waiting and not self._set:
            self._set = True
            self._call_later(self._wait_ns(now_ns))


def clients_most(descriptors: int) -> int:
    """How many clients may be in where the process may have so many descriptors."""
    left = descriptors - min(OTHER_DESCRIPTORS, descriptors // 2)
    return max(1, min(CLIENTS_MOST, left // CLIENT_DESCRIPTORS))


class Places:
    """What one allocation may have: what it is guaranteed, whatever the others have, and beyond that what is left of
    what all have in common."""

    __slots__ = ("_guaranteed", "_node", "_taken")

    def __init__(self, guaranteed: int, node: "NodePlaces") -> None:
        self._guaranteed = guaranteed
        self._node = node
        self._taken = 0

    @property
    def any_free(self) -> bool:
        """Whether there is one for it."""
        return self._taken < self._guaranteed or self._node.common_left > 0

    def take(self) -> None:
        """One client more has come; there was a place for it."""
        if self._taken >= self._guaranteed:
            self._node.common_left -= 1
        self._taken += 1

    def give(self) -> None:
        """One has gone."""
        self._taken -= 1
        if self._taken >= self._guaranteed:
            self._node.common_left += 1


class NodePlaces:
    """The places of a node: half of them are guaranteed, to allocations by their units, and the rest is of whoever
    comes first."""

    __slots__ = ("_guaranteed", "common_left")

    def __init__(self, most: int) -> None:
        self._guaranteed = most // 2
        self.common_left = most - most // 2
        """So many are there for any allocation."""

    def part(self, units: int, devices: int) -> Places:
        """The places of an allocation of so many units, of all that so many devices have; it has one at least."""
        return Places(max(1, self._guaranteed * units // (devices * UNITS_PER_DEVICE)), self)
