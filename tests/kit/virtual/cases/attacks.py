"""What hostile clients do over the socket of their allocation, as moves. Pure."""

import random
import socket
from collections.abc import Sequence
from itertools import product

from cuda_hook import wire
from tests.kit.virtual.cases.case import Attacker, Move

MIB = 1 << 20
MS = 1_000_000
PERCENT = 6
PLAIN = wire.MemoryKind.PLAIN
HELLO = wire.encode(wire.Hello(wire.VERSION, wire.VERSION, wire.Accelerator.GPU))
REQUEST = wire.encode(wire.Request())

PACKETS = {
    "malformed": wire.encode(wire.Release(1, 0, True)).replace(b"\x01\0\0\0", b"\0\0\0\0", 1),
    "truncated": wire.encode(wire.Release(1, 5, True))[:-1],
    "oversized": bytes(4096),
    "unknown": b"\x63\0\x08\0\0\0\0\0",
    "out-of-order": REQUEST,
}
"""Each costs a connection, by the offence that it is."""

TAKES = (Move(kind="send", packet=1), Move(kind="await_grant"), Move(kind="await_revoke"))
"""Asks for a slice, which is to be the second packet, and has it until it is called back."""

FLOODS = 4
"""Connections that one floods over."""

ASKING = 64
"""Connections that one asks for memory over: all that an allocation may have (max_clients)."""

CONNECTIONS = 150
"""Of one allocation that are open at once: more than it may have clients (max_clients), and more than twice of that."""


def attacker(packets: Sequence[bytes], *moves: Move, again: int = 0) -> Attacker:
    """Makes these moves without end, from the one numbered ``again`` on."""
    return Attacker(moves=moves, packets=tuple(packet.hex() for packet in packets), again=again, percent=PERCENT)


def join(connection: int = 0) -> tuple[Move, ...]:
    """Comes in as a good client does. HELLO is the first packet of who joins."""
    return tuple(Move(kind=kind, connection=connection) for kind in ("connect", "send", "receive"))


def malformed() -> Attacker:
    """Packets that are none, several on each connection: the first one costs it."""
    moves = [(Move(kind="connect"), Move(kind="send", packet=each, count=100)) for each in range(len(PACKETS))]
    return attacker(list(PACKETS.values()), *sum(moves, ()))


def stale() -> Attacker:
    """Releases, usage and forecasts of grants that are over or never were."""
    pick = random.Random(1)
    numbers = [pick.randrange(1, 1 << 32) for _ in range(64)]
    kinds = (lambda number: wire.Release(number, 1, True), lambda n: wire.Usage(n, 1), lambda n: wire.Draining(n, 1))
    packets = [wire.encode(kind(number)) for number in numbers for kind in kinds]
    sends = (Move(kind="send", packet=1 + each, count=100) for each in range(len(packets)))
    return attacker([HELLO, *packets], *join(), *sends, again=len(join()))


def flood() -> Attacker:
    """Records that are good, but far too many, over several connections at once."""
    joins = sum((join(connection) for connection in range(FLOODS)), ())
    sends = (Move(kind="send", connection=connection, packet=1, count=250) for connection in range(FLOODS))
    return attacker([HELLO, REQUEST], *joins, *sends, again=len(joins))


def asks() -> Attacker:
    """Asks for a slice, once, and gives nothing back."""
    moves = (Move(kind="send", packet=1), Move(kind="think", amount=60_000 * MS))
    return attacker([HELLO, REQUEST], *join(), *moves, again=len(join()) + 1)


def deaf() -> Attacker:
    """Asks and never reads the answers."""
    query = wire.encode(wire.MemoryQuery(1, 0))
    return attacker([HELLO, query], *join(), Move(kind="send", packet=1, count=1_000_000))


def curious() -> Attacker:
    """Asks again and again how much memory there is, and reads the answers."""
    query = wire.encode(wire.MemoryQuery(1, 0))
    return attacker([HELLO, query], *join(), Move(kind="send", packet=1), Move(kind="receive"), again=len(join()))


def keeps() -> Attacker:
    """Takes a slice and gives it back only by hanging up, long after it was called back, to take the next one."""
    return attacker([HELLO, REQUEST], *join(), *TAKES, Move(kind="think", amount=300 * MS), Move(kind="close"))


def lies_about_usage() -> Attacker:
    """Claims a century of GPU time, or none, as soon as it has a slice or when it is called back."""
    packets = [HELLO, REQUEST]
    moves: list[Move] = []
    for gpu_ns, waits in product((10**18, 0), (False, True)):
        moves += TAKES if waits else TAKES[:2]
        for record in (wire.Usage(1, gpu_ns), wire.Release(1, gpu_ns, waits)):
            moves.append(Move(kind="answer", packet=len(packets)))
            packets.append(wire.encode(record))
    return attacker(packets, *join(), *moves, again=len(join()))


def lies_about_drains() -> Attacker:
    """Claims, in its hints and when it is called back, that it will have drained in a century, and has at once."""
    packets = [HELLO, REQUEST, wire.encode(wire.Draining(1, 1 << 61)), wire.encode(wire.Release(1, 0, False))]
    answers = (Move(kind="answer", packet=2), Move(kind="answer", packet=3))
    return attacker(packets, *join(), Move(kind="hint", amount=1 << 61), *TAKES, *answers, again=len(join()))


def drains_long(drain_ms: int) -> Attacker:
    """Says when it is called back that it will have drained in a century, and has after this time."""
    packets = [HELLO, REQUEST, wire.encode(wire.Draining(1, 1 << 61)), wire.encode(wire.Release(1, 0, False))]
    drains = (
        Move(kind="answer", packet=2),
        Move(kind="think", amount=drain_ms * MS),
        Move(kind="answer", packet=3),
    )
    return attacker(packets, *join(), *TAKES, *drains, again=len(join()))


def asks_for_memory() -> Attacker:
    """Asks over many connections, again and again, for more memory than there is."""
    reserve = wire.encode(wire.Reserve(1, 1 << 50, 0, PLAIN))
    joins = sum((join(connection) for connection in range(ASKING)), ())
    sends = (Move(kind="send", connection=connection, packet=1) for connection in range(ASKING))
    receives = (Move(kind="receive", connection=connection) for connection in range(ASKING))
    return attacker([HELLO, reserve], *joins, *sends, *receives, again=len(joins))


def lies_about_memory() -> Attacker:
    """Frees what it never had."""
    receives = (Move(kind="receive"), Move(kind="receive"))
    return attacker([HELLO, wire.encode(wire.Freed(MIB, 0, PLAIN))], *join(), Move(kind="send", packet=1), *receives)


def crowd() -> Attacker:
    """Connections that say nothing, kept open."""
    connects = (Move(kind="connect", connection=each) for each in range(CONNECTIONS))
    return attacker([], *connects, Move(kind="think", amount=60_000 * MS), again=CONNECTIONS)


def half_closes() -> Attacker:
    """Shuts one direction and stays."""
    moves: list[Move] = []
    for each in range(CONNECTIONS):
        how = (socket.SHUT_WR, socket.SHUT_RD)[each % 2]
        moves += [Move(kind="connect", connection=each), Move(kind="send", connection=each)]
        moves.append(Move(kind="shut", connection=each, amount=how))
    return attacker([HELLO], *moves)
