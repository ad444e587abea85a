"""What the scripted manager answers to a client that speaks of memory: the real manager's own ledger says it."""

from collections.abc import Callable

from cuda_hook import wire
from sharemgr.node.memory.allowances import Memory
from sharemgr.node.memory.entry import Verdict
from tests.kit.hook.connection import Connection


def memory_answer(
    memory: Memory, connection: Connection, record: wire.ClientRecord, hear_ends: Callable[[], None]
) -> bytes | None:
    """The record that answers this one, if any does; what it says is in the books then. ``hear_ends`` is called before
    anything is refused: whoever has hung up has to be gone by then."""
    if isinstance(record, wire.Reserve | wire.Freed | wire.MemoryQuery):
        memory.declared(connection.number)
    match record:
        case wire.Reserve(number):
            verdict = _reserve(memory, connection, record)
            if not verdict.granted:
                hear_ends()
                verdict = _reserve(memory, connection, record)
            return wire.encode(wire.Reserved(number, verdict.free_bytes, verdict.granted))
        case wire.Declare(size, device, wire.MemoryKind.PLAIN):
            memory.declare(connection.number, device, size)
        case wire.Freed(size, device, wire.MemoryKind.PLAIN):
            memory.freed(connection.number, device, size)
        case wire.Freed(_, device):
            memory.context_ended(connection.number, device)
        case wire.Declare(_, device):
            memory.declare_context(connection.number, device)
        case wire.MemoryQuery(number, device):
            info = memory.info(device)
            return wire.encode(wire.MemoryInfo(number, info.cap_bytes, info.used_bytes))
    return None


def _reserve(memory: Memory, connection: Connection, record: wire.Reserve) -> Verdict:
    if record.kind == wire.MemoryKind.CONTEXT:
        return memory.reserve_context(connection.number, record.device)
    return memory.reserve(connection.number, record.device, record.size_bytes)
