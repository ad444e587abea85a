"""The records that a client and the node's manager exchange, as values; ``wire.h`` says what each means.

``parse`` reads what a client sent and ``parse_answer`` what the manager sent; ``encode`` writes either. None
of them does any IO. The checks are the C library's own, so both sides refuse the same packets. A value's
members are named as the C structure's, so that one table says how each kind is read and written.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, TypeVar

from cuda_hook._core import ffi, lib
from edgeshare.errors import EdgeshareError

VERSION = lib.ES_VERSION
RECORD_BYTES_MAX = lib.ES_RECORD_BYTES_MAX


class MalformedRecord(EdgeshareError):
    """A packet that the other side never sends: its connection is to be closed."""


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
class Commit:
    number: int
    size_bytes: int
    device: int
    kind: MemoryKind


@dataclass(frozen=True)
class Cancel:
    number: int
    device: int
    kind: MemoryKind


@dataclass(frozen=True)
class Freed:
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


ClientRecord = Hello | Request | Release | Usage | Reserve | Commit | Cancel | Freed | MemoryQuery
ManagerRecord = Welcome | Refused | Reserved | MemoryInfo
Record = ClientRecord | ManagerRecord

_CLIENT: dict[int, tuple[type[ClientRecord], str]] = {
    lib.ES_HELLO: (Hello, "struct es_hello"),
    lib.ES_REQUEST: (Request, "struct es_request"),
    lib.ES_RELEASE: (Release, "struct es_release"),
    lib.ES_USAGE: (Usage, "struct es_usage"),
    lib.ES_RESERVE: (Reserve, "struct es_reserve"),
    lib.ES_COMMIT: (Commit, "struct es_memory"),
    lib.ES_CANCEL: (Cancel, "struct es_memory"),
    lib.ES_FREED: (Freed, "struct es_memory"),
    lib.ES_MEMORY_QUERY: (MemoryQuery, "struct es_memory_query"),
}
_MANAGER: dict[int, tuple[type[ManagerRecord], str]] = {
    lib.ES_WELCOME: (Welcome, "struct es_welcome"),
    lib.ES_REFUSED: (Refused, "struct es_refused"),
    lib.ES_RESERVED: (Reserved, "struct es_reserved"),
    lib.ES_MEMORY_INFO: (MemoryInfo, "struct es_memory_info"),
}
_KINDS: dict[type[Record], tuple[int, str]] = {
    record: (kind, struct) for table in (_CLIENT, _MANAGER) for kind, (record, struct) in table.items()
}
_R = TypeVar("_R", bound=Record)
_C_NAMES = {"size_bytes": "bytes", "follows": "flags"}


def parse(packet: bytes) -> ClientRecord:
    """Reads one packet that a client sent; raises MalformedRecord."""
    return _parse(packet, lib.es_check_from_client, _CLIENT)


def parse_answer(packet: bytes) -> ManagerRecord:
    """Reads one packet that the manager sent; raises MalformedRecord."""
    return _parse(packet, lib.es_check_from_manager, _MANAGER)


def encode(record: Record) -> bytes:
    """The packet of a record. Raises OverflowError for a number that its field cannot hold."""
    kind, struct = _KINDS[type(record)]
    size = ffi.sizeof(struct)
    values = {_C_NAMES.get(name, name): _to_c(value) for name, value in vars(record).items()}
    header = {"kind": kind, "size": size, "number": values.pop("number", 0)}
    return bytes(ffi.buffer(ffi.new(f"{struct} *", {"header": header, **values})))


def _parse(packet: bytes, check: Callable[[Any, int], int], table: dict[int, tuple[type[_R], str]]) -> _R:
    kind = check(ffi.from_buffer(packet), len(packet))
    if kind < 0:
        why = bytes(ffi.string(lib.es_malformed_text(kind))).decode()
        raise MalformedRecord(f"malformed record of {len(packet)} bytes: {why}")
    record_type, struct = table[kind]
    record = ffi.new(f"{struct} *")
    ffi.memmove(record, packet, len(packet))
    values: dict[str, Any] = {
        field.name: _from_c(record, field.name, field.type) for field in fields(record_type)
    }
    return record_type(**values)


def _from_c(record: Any, name: str, target: Any) -> int | str:
    """A member of a C record as the type that its dataclass declares (an int, a bool, an enum or a text)."""
    value = record.header.number if name == "number" else getattr(record, _C_NAMES.get(name, name))
    if target is str:
        return bytes(ffi.string(value)).decode(errors="replace")
    return int(value) if target is int else target(value)


def _to_c(value: int | str) -> int | bytes:
    if isinstance(value, str):
        # The last byte stays zero, and no character is cut in two.
        return value.encode()[: lib.ES_TEXT_BYTES - 1].decode(errors="ignore").encode()
    return int(value)
