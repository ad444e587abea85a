"""What one allocation does, stretch after stretch."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from edgeshare.shown.words import STATES
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import (
    ALLOCATION_STATE_DRAINING,
    ALLOCATION_STATE_HOLDING,
    ALLOCATION_STATE_IDLE,
    ALLOCATION_STATE_WAITING,
    TurnChange,
)

WAITING = STATES[ALLOCATION_STATE_WAITING]
HOLDING = STATES[ALLOCATION_STATE_HOLDING]
TURN = (HOLDING, STATES[ALLOCATION_STATE_DRAINING])
"""What one does who has the device for itself."""


@dataclass
class Stretch:
    """What an allocation does from then on, until its next stretch begins. No name: it has no work, or nobody knows."""

    from_ns: int
    name: str
    grant: int = 0
    """The number of the grant that it holds or drains."""


@dataclass(frozen=True)
class Span:
    """A stretch that has a name, from begin to end."""

    begin_ns: int
    end_ns: int
    name: str
    grant: int


@dataclass
class Line:
    """The stretches of one allocation, no two of which overlap."""

    allocation: Allocation
    """As it was named last."""
    stretches: list[Stretch] = field(default_factory=list)

    def take(self, change: TurnChange) -> None:
        """The allocation stands otherwise from the time of the change on."""
        name = _name(change)
        holds = change.state == ALLOCATION_STATE_HOLDING
        grant = change.grant if holds or change.state == ALLOCATION_STATE_DRAINING else 0
        last = self.stretches[-1] if self.stretches else None
        if holds and last is not None and (last.name, last.grant) == (name, grant):
            # The same grant begins at another time than was said.
            self.stretches.pop()
            self._wait_and_hold(last.from_ns, change.begins_at_ns, name, grant)
            return
        self._cut(change.at_ns)
        if holds and change.begins_at_ns > change.at_ns:
            self._wait_and_hold(change.at_ns, change.begins_at_ns, name, grant)
        else:
            self._add(change.at_ns, name, grant)

    def lose(self, at_ns: int) -> None:
        """Nobody knows what it does from then on."""
        self._cut(at_ns)
        self._add(at_ns, "", 0)

    def spans(self, begin_ns: int, end_ns: int) -> Iterator[Span]:
        """What is between these times."""
        ends_ns = [*(stretch.from_ns for stretch in self.stretches[1:]), end_ns]
        for stretch, to_ns in zip(self.stretches, ends_ns, strict=bool(self.stretches)):
            from_ns, until_ns = max(stretch.from_ns, begin_ns), min(to_ns, end_ns)
            if stretch.name and from_ns < until_ns:
                yield Span(from_ns, until_ns, stretch.name, stretch.grant)

    def _wait_and_hold(self, from_ns: int, begins_at_ns: int, name: str, grant: int) -> None:
        """A turn that was granted ahead: until the one before it has drained, it waits."""
        self._add(min(from_ns, begins_at_ns), WAITING, 0)
        self._add(begins_at_ns, name, grant)

    def _cut(self, at_ns: int) -> None:
        """A grant that was to begin later does not."""
        while self.stretches and self.stretches[-1].from_ns > at_ns:
            self.stretches.pop()

    def _add(self, from_ns: int, name: str, grant: int) -> None:
        if self.stretches:
            last = self.stretches[-1]
            if (last.name, last.grant) == (name, grant):
                return
            from_ns = max(from_ns, last.from_ns)
        self.stretches.append(Stretch(from_ns, name, grant))


def _name(change: TurnChange) -> str:
    """As `edgeshare status` calls it."""
    if change.removed or change.state == ALLOCATION_STATE_IDLE:
        return ""
    if change.overlapping:
        return "overlapping"
    if change.throttled:
        return "throttled"
    name = STATES.get(change.state, "unknown")
    return f"{name} beside" if change.beside and change.state == ALLOCATION_STATE_HOLDING else name
