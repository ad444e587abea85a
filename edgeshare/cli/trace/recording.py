"""What the manager tells of turns, message after message."""

from collections.abc import Iterable
from dataclasses import dataclass

from edgeshare.cli.trace.lines import Line, Span
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import DeviceStatus, Turns


@dataclass(frozen=True)
class Loss:
    """Changes were lost after that time."""

    at_ns: int
    changes: int


@dataclass(frozen=True)
class Rate:
    """What an allocation used of a device's time from then on."""

    from_ns: int
    allocation_id: str
    percent: float


class Recording:
    """What was told from the first message on. Times are the manager's, on its monotonic clock."""

    def __init__(self, devices: Iterable[DeviceStatus], length_ns: int) -> None:
        self.devices = {device.id: device for device in devices}
        """By id: those that were there at its begin."""
        self.begin_ns = -1
        """Of it; −1 before that."""
        self.begin_epoch_ns = 0
        """In Unix time."""
        self.lines: dict[str, Line] = {}
        """By allocation, those that are not there any more, too."""
        self.losses: list[Loss] = []
        self.rates: list[Rate] = []
        self._length_ns = length_ns
        self._known_ns = 0  # until then all was told
        self._gpu_ns: dict[str, int] = {}  # by allocation, when it was told last …
        self._counted_ns = 0  # … which was then

    @property
    def is_whole(self) -> bool:
        """Whether all of it was told."""
        return self.begin_ns >= 0 and self._known_ns >= self.begin_ns + self._length_ns

    @property
    def end_ns(self) -> int:
        """Until when it goes; before its end, if it broke off."""
        return min(self._known_ns, self.begin_ns + self._length_ns)

    def spans(self, line: Line) -> list[Span]:
        """What an allocation did meanwhile."""
        return list(line.spans(self.begin_ns, self.end_ns))

    def take(self, turns: Turns) -> None:
        """The next message."""
        if self.begin_ns < 0:
            self.begin_ns = self._known_ns = self._counted_ns = turns.now_ns
            self.begin_epoch_ns = turns.epoch_ns
        if turns.lost_changes:
            self.losses.append(Loss(self._known_ns, turns.lost_changes))
            for line in self.lines.values():
                line.lose(self._known_ns)
        for allocation in turns.allocations:
            self._line(allocation.id).allocation = allocation
        for change in turns.changes:
            self._line(change.allocation_id).take(change)
            self._known_ns = max(self._known_ns, change.at_ns)
        if not turns.more:
            self._count(turns)
            self._known_ns = max(self._known_ns, turns.now_ns)

    def _line(self, allocation_id: str) -> Line:
        return self.lines.setdefault(allocation_id, Line(Allocation(id=allocation_id)))

    def _count(self, turns: Turns) -> None:
        """Of processes that ended nobody knows what they used last, and what one says may be a lie."""
        elapsed_ns = turns.now_ns - self._counted_ns
        for each in turns.gpu_times:
            before_ns = self._gpu_ns.get(each.allocation_id, each.gpu_ns)
            if elapsed_ns > 0:
                percent = 100 * min(max(0, each.gpu_ns - before_ns) / elapsed_ns, 1)
                self.rates.append(Rate(self._counted_ns, each.allocation_id, percent))
        self._gpu_ns = {each.allocation_id: each.gpu_ns for each in turns.gpu_times}
        self._counted_ns = turns.now_ns
