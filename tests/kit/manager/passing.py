"""Descriptors that are passed along, and are slow to close."""

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

LINGERS_S = 3600
"""So long somebody waits who drops the last reference to what is passed in."""

OLDER_KERNEL = (
    sys.executable,
    "-c",
    "from sharemgr.node.sockets import closer; closer.SO_PASSRIGHTS = 9999; from edgeshare.cli import main; main()",
)
"""A manager on one that does not know the option by which descriptors are refused: of socket(7) 9999 is none."""


@contextmanager
def lingering() -> Iterator[socket.socket]:
    """A connection with something in it that nobody takes, for as long as this is entered: who closes it waits."""
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:
        sender = stack.enter_context(socket.create_connection(server.getsockname()))
        receiver, _ = server.accept()
        stack.enter_context(receiver)
        sender.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                sender.send(bytes(1 << 16))
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGERS_S))
        yield sender
        # Where nobody else has it, it would be us who wait.
        if sender.fileno() >= 0:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))


def passes(connection: socket.socket, packet: bytes, *files: socket.socket) -> bool:
    """Passes them along, and has none of them any more; False where the kernel refuses it."""
    try:
        socket.send_fds(connection, [packet], [file.fileno() for file in files])
    except PermissionError:
        return False
    for file in files:
        file.close()
    return True
