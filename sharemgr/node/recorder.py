"""What was decided of allocations' turns, kept for those who read it: only while they do, and no more than so much."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic_ns, time_ns
from typing import Any

from cuda_hook._core import ffi
from edgeshare.contract.errors import NoRoom
from edgeshare.v1.status_pb2 import GpuTime, TurnChange, Turns
from sharemgr.node.clients.server import AllocationServer
from sharemgr.node.machine.allocations import Allocation
from sharemgr.node.machine.messages import message_from
from sharemgr.node.serving import Serving
from sharemgr.node.status import STATES
from sharemgr.node.turns.account import STATES as STATE_OF_PHASE
from sharemgr.node.turns.account import Moment
from sharemgr.node.turns.phases import OVERLAPPING, THROTTLED

READERS_MAX = 4
"""At a time: each makes every event of every device dearer."""

CHANGES_MAX = 10_000
"""Kept for one reader: who reads ten times a second loses some only where there are a hundred thousand a second."""

CHANGES_A_MESSAGE = 100
"""Grants wait while a message is made: for a quarter of a millisecond."""

GPU_NS_MAX = (1 << 63) - 1
"""What is told of GPU time at most: a client writes into its hint page what it likes."""

Change = tuple[int, str, Allocation | None, Moment | None]
"""From when on, and which allocation; None where it is not known any more. How it stands; None where it was removed."""


class Recorder:
    """What one reader has not read yet."""

    def __init__(self, find: Callable[[str], Allocation | None]) -> None:
        """``find`` knows the allocations of now."""
        self.told: dict[str, Moment] = {}
        """By allocation: what it was told last."""
        self.lost = 0
        """Changes before the next that could not be kept."""
        self._find = find
        self._changes: deque[Change] = deque()

    def take(self, allocation_id: str, moment: Moment | None, at_ns: int) -> None:
        """Where an allocation stands from then on; None: it is removed. Where there is no room for that, what was kept
        is given up, and all has to be told anew: of a part nobody could say how things stood at its end."""
        if len(self._changes) == CHANGES_MAX:
            self.lost += len(self._changes)
            self._changes.clear()
            self.told.clear()
        self._changes.append((at_ns, allocation_id, self._find(allocation_id), moment))

    def give(self) -> list[Change]:
        """The oldest, as many as go into a message."""
        self.lost = 0
        return [self._changes.popleft() for _ in range(min(len(self._changes), CHANGES_A_MESSAGE))]

    @property
    def more(self) -> bool:
        """Whether something is kept."""
        return bool(self._changes)


class Recorders:
    """The recorders of one node, one for each reader."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._used: Any = ffi.new("struct es_used *")

    @contextmanager
    def open(self) -> Iterator[Recorder]:
        """Records until the end. Raises NoRoom where too many read already."""
        readers = self._serving.readers
        if len(readers) >= READERS_MAX:
            raise NoRoom(
                f"{READERS_MAX} follow the turns already, and no more can: try again when one of them has ended"
            )
        recorder = Recorder(self._serving.book.find)
        readers.append(recorder)
        try:
            self._tell()
            yield recorder
        finally:
            readers.remove(recorder)

    def read(self, recorder: Recorder) -> Turns:
        """The next message for a reader."""
        lost = recorder.lost
        if lost:
            self._tell()
        changes = recorder.give()
        named = {allocation.id: allocation for _, _, allocation, _ in changes if allocation is not None}
        return Turns(
            now_ns=monotonic_ns(),
            epoch_ns=time_ns(),
            lost_changes=lost,
            allocations=map(message_from, named.values()),
            changes=[_message(at_ns, allocation_id, moment) for at_ns, allocation_id, _, moment in changes],
            more=recorder.more,
            gpu_times=() if recorder.more else self._gpu_times(),
        )

    def _tell(self) -> None:
        """Of a device where nothing happens, nobody would know anything else."""
        for device in self._serving.arbiters.values():
            device.tell()

    def _gpu_times(self) -> Iterator[GpuTime]:
        for allocation_id, server in self._serving.servers.items():
            yield GpuTime(allocation_id=allocation_id, gpu_ns=min(self._gpu_ns(server), GPU_NS_MAX))

    def _gpu_ns(self, server: AllocationServer) -> int:
        gpu_ns = 0
        for client in server.clients.values():
            if client.pages is not None:
                client.pages.used(self._used)
                gpu_ns += self._used.gpu_ns
        return gpu_ns


def _message(at_ns: int, allocation_id: str, moment: Moment | None) -> TurnChange:
    if moment is None:
        return TurnChange(at_ns=at_ns, allocation_id=allocation_id, removed=True)
    return TurnChange(
        at_ns=at_ns,
        allocation_id=allocation_id,
        state=STATES[STATE_OF_PHASE[moment.phase]],
        overlapping=moment.phase is OVERLAPPING,
        throttled=moment.phase is THROTTLED,
        beside=moment.beside,
        grant=moment.number,
        begins_at_ns=moment.begins_at_ns,
    )
