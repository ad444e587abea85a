"""``python -m bench.machine.relay FD FD``: what ``floor relay`` does, in Python, as a manager in Python has to."""

import selectors
import socket
import sys


def relay(first: socket.socket, second: socket.socket) -> None:
    """Passes each packet of one on to the other, until one of them ends."""
    selector = selectors.DefaultSelector()
    selector.register(first, selectors.EVENT_READ, second)
    selector.register(second, selectors.EVENT_READ, first)
    while True:
        for key, _ in selector.select():
            source = key.fileobj
            assert isinstance(source, socket.socket)
            packet = source.recv(64)
            if not packet:
                return
            try:
                key.data.send(packet)
            except BrokenPipeError:
                return


if __name__ == "__main__":
    relay(socket.socket(fileno=int(sys.argv[1])), socket.socket(fileno=int(sys.argv[2])))
