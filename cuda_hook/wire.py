"""The records that a client and the node's manager exchange, as values; ``wire.h`` says what each means.

``parse`` reads what a client sent, ``parse_answer`` what the manager sent; ``encode`` writes either. The checks are
the C library's own: both sides refuse the same packets. Members are named as the C structure's, so that one table says
how each kind is read and written.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum
from operator import attrgetter
from typing import Any, TypeVar

from cuda_hook._core import ffi, lib
from edgeshare.contract.errors import EdgeshareError

VERSION, VERSION_MIN = lib.ES_VERSION, lib.ES_VERSION_MIN
"""The newest, and the oldest that is still spoken."""
RECORD_BYTES_MAX = lib.ES_RECORD_BYTES_MAX
REQUEST, RELEASE, DRAINING, USAGE = lib.ES_REQUEST, lib.ES_RELEASE, lib.ES_DRAINING, lib.ES_USAGE
RELEASE_BYTES = ffi.sizeof("struct es_release")


class Flaw(IntEnum):
    """Why a packet is no record."""

    FIELD = lib.ES_MALFORMED_FIELD
    SIZE = lib.ES_MALFORMED_SIZE
    UNKNOWN = lib.ES_MALFORMED_SENDER
    SHORT = lib.ES_MALFORMED_SHORT


class MalformedRecord(EdgeshareError):
    """A packet that the other side never sends: its connection is to be closed."""

    def __init__(self, flaw: Flaw, size_bytes: int) -> None:
        why = bytes(ffi.string(lib.es_malformed_text(flaw))).decode()
        super().__init__(f"malformed record of {size_bytes} bytes: {why}")
        self.flaw = flaw


class Accelerator(IntEnum):
    GPU = lib.ES_ACCELERATOR_GPU
    EDGETPU = lib.ES_ACCELERATOR_EDGETPU


class FailurePolicy(IntEnum):
    OPEN = lib.ES_FAIL_OPEN
    CLOSED = lib.ES_FAIL_CLOSED


class Refusal(IntEnum):
    VERSION = lib.ES_REFUSAL_VERSION
    ACCELERATOR = lib.ES_REFUSAL_ACCELERATOR
    FULL = lib.ES_REFUSAL_FULL
    ENDED = lib.ES_REFUSAL_ENDED


class MemoryKind(IntEnum):
    PLAIN = lib.ES_MEMORY_PLAIN
    CONTEXT = lib.ES_MEMORY_CONTEXT


@dataclass(frozen=True)
class Hello:
    version_min: int
    version_max: int
    accelerator: int
    """An Accelerator, or a kind that this manager does not know."""


@dataclass(frozen=True)
class Welcome:
    version: int
    failure_policy: FailurePolicy
    grace_ms: int
    epoch: int
    queue_cap_ns: int
    anticipation_ns: int
    memory_cap_bytes: int
    ignore_managed: bool = False
    """Managed memory is not counted."""


@dataclass(frozen=True)
class Wait:
    pass


@dataclass(frozen=True)
class Refused:
    reason: int
    """A Refusal, or one that is newer than this side."""
    text: str


@dataclass(frozen=True)
class Request:
    pass


@dataclass(frozen=True)
class Release:
    number: int
    gpu_ns: int
    follows: bool


@dataclass(frozen=True)
class Draining:
    number: int
    ends_at_ns: int


@dataclass(frozen=True)
class Usage:
    number: int
    gpu_ns: int


@dataclass(frozen=True)
class Reserve:
    number: int
    size_bytes: int
    device: int
    kind: MemoryKind


@dataclass(frozen=True)
class Reserved:
    number: int
    free_bytes: int
    granted: bool


@dataclass(frozen=True)
class Freed:
    size_bytes: int
    device: int
    kind: MemoryKind


@dataclass(frozen=True)
class Declare:
    size_bytes: int
    device: int
    kind: MemoryKind


@dataclass(frozen=True)
class MemoryQuery:
    number: int
    device: int


@dataclass(frozen=True)
class MemoryInfo:
    number: int
    cap_bytes: int
    used_bytes: int


ClientRecord = Hello | Request | Release | Draining | Usage | Reserve | Freed | Declare | MemoryQuery
ManagerRecord = Welcome | Wait | Refused | Reserved | MemoryInfo
Record = ClientRecord | ManagerRecord

_KINDS: dict[type[Record], int] = {
    Hello: lib.ES_HELLO,
    Welcome: lib.ES_WELCOME,
    Wait: lib.ES_WAIT,
    Refused: lib.ES_REFUSED,
    Request: lib.ES_REQUEST,
    Release: lib.ES_RELEASE,
    Draining: lib.ES_DRAINING,
    Usage: lib.ES_USAGE,
    Reserve: lib.ES_RESERVE,
    Reserved: lib.ES_RESERVED,
    Freed: lib.ES_FREED,
    Declare: lib.ES_DECLARE,
    MemoryQuery: lib.ES_MEMORY_QUERY,
    MemoryInfo: lib.ES_MEMORY_INFO,
}
"""The structure of each, and who sends it, are in ``records.def``."""
_T = TypeVar("_T")
_Reader = Callable[[Any], _T]
_C_NAMES = {"size_bytes": "bytes", "follows": "flags", "ignore_managed": "flags"}


class Inbox:
    """Where a packet from a client is received, and read without making a value of it: a RELEASE is read while the
    device stands idle."""

    def __init__(self) -> None:
        self.buffer = bytearray(RECORD_BYTES_MAX + 1)
        """One byte more than any record has, so that a longer packet is seen to be longer."""
        self._start: Any = ffi.from_buffer(self.buffer)
        self.header: Any = ffi.cast("struct es_header *", self._start)
        self.release: Any = ffi.cast("struct es_release *", self._start)
        self.draining: Any = ffi.cast("struct es_draining *", self._start)
        self.usage: Any = ffi.cast("struct es_usage *", self._start)
        self._check = lib.es_check_from_client
        self.received = 0
        """Packets so far."""

    def kind(self, size_bytes: int) -> int:
        """The kind of the record that was received (its member holds it then); raises MalformedRecord."""
        self.received += 1
        kind: int = self._check(self._start, size_bytes)
        if kind < 0:
            raise MalformedRecord(Flaw(kind), size_bytes)
        return kind

    def exceeds(self, size_bytes: int) -> bool:
        """Whether what was received is longer than the kind that it claims to be."""
        return size_bytes > int(lib.es_record_bytes(self.header.kind))

    def record(self, kind: int) -> ClientRecord:
        """The record that was received last, as a value."""
        return _CLIENT_READERS[kind](self._start)


def agreed_version(hello: Hello) -> int:
    """The highest version that this side and a client speak; 0 where there is none."""
    version: int = min(VERSION, hello.version_max)
    return version if version >= max(VERSION_MIN, hello.version_min) else 0


def parse(packet: bytes) -> ClientRecord:
    """Reads one packet that a client sent; raises MalformedRecord."""
    return _parse(packet, lib.es_check_from_client, _CLIENT_READERS)


def parse_answer(packet: bytes) -> ManagerRecord:
    """Reads one packet that the manager sent; raises MalformedRecord."""
    return _parse(packet, lib.es_check_from_manager, _MANAGER_READERS)


def encode(record: Record) -> bytes:
    """The packet of a record. Raises OverflowError for a number that its field cannot hold."""
    kind, size, pointer = _LAYOUTS[type(record)]
    values = {_C_NAMES.get(name, name): _to_c(value) for name, value in vars(record).items()}
    header = {"kind": kind, "size": size, "number": values.pop("number", 0)}
    return bytes(ffi.buffer(ffi.new(pointer, {"header": header, **values})))


def _parse(packet: bytes, check: Callable[[Any, int], int], readers: dict[int, _Reader[_T]]) -> _T:
    buffer = ffi.from_buffer(packet)
    kind = check(buffer, len(packet))
    if kind < 0:
        raise MalformedRecord(Flaw(kind), len(packet))
    return readers[kind](buffer)


def _reader(record_type: type[Any]) -> _Reader[Any]:
    """What makes a record of a checked packet. All that can be looked up is looked up here, once: a RELEASE is read
    while the device stands idle."""
    _, _, pointer = _LAYOUTS[record_type]
    getters = tuple(_getter(field.name, field.type) for field in fields(record_type))

    def read(buffer: Any) -> Any:
        record = ffi.cast(pointer, buffer)
        return record_type(*[get(record) for get in getters])

    return read


def _getter(name: str, target: Any) -> Callable[[Any], Any]:
    """Reads a member of a C record as the type that its dataclass declares (an int, a bool, an enum or a text)."""
    member = attrgetter("header.number" if name == "number" else _C_NAMES.get(name, name))
    if target is int:
        return member
    if target is str:
        return lambda record: bytes(ffi.string(member(record))).decode(errors="replace")
    return lambda record: target(member(record))


def _to_c(value: int | str) -> int | bytes:
    if isinstance(value, str):
        # The last byte stays zero, and no character is cut in two.
        return value.encode()[: lib.ES_TEXT_BYTES - 1].decode(errors="ignore").encode()
    return int(value)


def _layout(kind: int) -> tuple[int, int, Any]:
    """A kind, its record's size in bytes, and a pointer to its structure."""
    struct = bytes(ffi.string(lib.es_record_struct(kind))).decode()
    return kind, int(lib.es_record_bytes(kind)), ffi.typeof(f"{struct} *")


_LAYOUTS = {record: _layout(kind) for record, kind in _KINDS.items()}
"""Looked up once: whoever calls C lets other threads run meanwhile."""


def _readers(sender: int) -> dict[int, _Reader[Any]]:
    """What reads each kind that this side sends."""
    return {kind: _reader(record) for record, kind in _KINDS.items() if lib.es_record_sender(kind) == sender}


_CLIENT_READERS: dict[int, _Reader[ClientRecord]] = _readers(lib.ES_SENDER_CLIENT)
_MANAGER_READERS: dict[int, _Reader[ManagerRecord]] = _readers(lib.ES_SENDER_MANAGER)
