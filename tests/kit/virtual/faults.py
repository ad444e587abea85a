"""What happens to the processes of a case, at their points or at a time, whoever is the manager by then."""

import asyncio
import errno
import os
import socket
import time
from collections.abc import Mapping, Sequence

from edgeshare.contract.units import NS_PER_MS
from tests.kit.virtual.cases.case import Fault
from tests.kit.virtual.native import Vt


def pass_nothing(until_s: float) -> None:
    """Until then no descriptor can be passed, as where processes of one user have too many on their way."""
    passes = socket.send_fds

    def send_fds(connection: socket.socket, buffers: Sequence[bytes], fds: Sequence[int]) -> int:
        if time.monotonic() < until_s:
            raise OSError(errno.ETOOMANYREFS, os.strerror(errno.ETOOMANYREFS))
        return passes(connection, buffers, fds)

    socket.send_fds = send_fds  # type: ignore[assignment]


class Faults:
    """The faults of a case."""

    def __init__(self, faults: Sequence[Fault], vt: Vt) -> None:
        self._faults = faults
        self._vt = vt
        self._to_come: list[tuple[float, int, str]] = []  # when, to which process, and what

    def arrange_points(self, process: int, name: str) -> None:
        """What is to happen at one of its points, counted from now."""
        for fault in self._faults:
            if fault.process == name and fault.at_point:
                at = self._vt.points_of(process) + fault.at_point
                self._vt.act_at(process, at, fault.action, round(fault.for_ms * NS_PER_MS))

    def arrange_times(self, processes: Mapping[str, int], loop: asyncio.AbstractEventLoop) -> None:
        """What is to happen at a time from now on."""
        now_s = time.monotonic()
        for fault in self._faults:
            if not fault.at_point:
                at_s, process = now_s + fault.at_ms / 1000, processes[fault.process]
                self._to_come.append((at_s, process, fault.action))
                if fault.action == "stop":
                    self._to_come.append((at_s + fault.for_ms / 1000, process, "continue"))
        self.go_on(loop)

    def go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop is another one: what is still to happen does so there, at once where there was none at its time."""
        for action in self._to_come:
            loop.call_later(max(0, action[0] - time.monotonic()), self._act, action)

    def _act(self, action: tuple[float, int, str]) -> None:
        self._to_come.remove(action)
        _, process, what = action
        self._vt.act(process, what)
