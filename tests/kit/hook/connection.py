"""A client's connection to the scripted manager."""

import select
import socket
from dataclasses import dataclass, field

from cuda_hook import wire
from cuda_hook.gate import GatePages


@dataclass
class Connection:
    """One client, and all that it has said."""

    socket: socket.socket
    number: int
    pid: int
    pages: GatePages | None = None
    records: list[wire.ClientRecord] = field(default_factory=list)
    ended: bool = False


def hung_up(peer: socket.socket) -> bool:
    """Whether the other end is closed, however much of what it said is still to be read."""
    poll = select.poll()
    poll.register(peer, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))
