from typing import Any

from typing_extensions import Buffer

class _FFI:
    NULL: Any
    errno: int

    def new(self, cdecl: str, init: object = ...) -> Any: ...
    def cast(self, cdecl: str, source: Any) -> Any: ...
    def typeof(self, cdecl: str) -> Any: ...
    def sizeof(self, cdecl: str) -> int: ...
    def string(self, cdata: Any) -> bytes: ...
    def buffer(self, cdata: Any) -> Buffer: ...
    def from_buffer(self, source: Buffer) -> Any: ...
    def memmove(self, destination: Any, source: Any, size: int) -> None: ...

class _Lib:
    ES_VERSION: int
    ES_RECORD_BYTES_MAX: int
    ES_PAGE_BYTES: int
    ES_TEXT_BYTES: int
    ES_HELLO: int
    ES_WELCOME: int
    ES_REFUSED: int
    ES_REQUEST: int
    ES_RELEASE: int
    ES_DRAINING: int
    ES_USAGE: int
    ES_RESERVE: int
    ES_RESERVED: int
    ES_COMMIT: int
    ES_CANCEL: int
    ES_FREED: int
    ES_MEMORY_QUERY: int
    ES_MEMORY_INFO: int
    ES_ACCELERATOR_GPU: int
    ES_ACCELERATOR_EDGETPU: int
    ES_FAIL_OPEN: int
    ES_FAIL_CLOSED: int
    ES_REFUSAL_VERSION: int
    ES_REFUSAL_ACCELERATOR: int
    ES_REFUSAL_FULL: int
    ES_REFUSAL_ENDED: int
    ES_MEMORY_PLAIN: int
    ES_MEMORY_CONTEXT: int
    ES_GATE_HELD: int
    ES_GATE_CONTENDED: int
    ES_GATE_NUMBER_SHIFT: int
    ES_RELEASE_FOLLOWS: int
    ES_MALFORMED_SHORT: int
    ES_MALFORMED_SENDER: int
    ES_MALFORMED_SIZE: int
    ES_MALFORMED_FIELD: int
    CLOCK_MONOTONIC: int
    TFD_NONBLOCK: int
    TFD_CLOEXEC: int
    TFD_TIMER_ABSTIME: int

    def es_record_bytes(self, kind: int) -> int: ...
    def es_check_from_client(self, packet: Any, size: int) -> int: ...
    def es_check_from_manager(self, packet: Any, size: int) -> int: ...
    def es_malformed_text(self, malformed: int) -> Any: ...
    def es_gate_open_word(self, number: int, contended: int) -> int: ...
    def es_gate_number(self, word: int) -> int: ...
    def es_gate_open(self, page: Any, number: int, contended: int, now_ns: int) -> None: ...
    def es_gate_close(self, page: Any) -> None: ...
    def es_gate_discard(self, page: Any) -> None: ...
    def es_gate_load(self, page: Any) -> int: ...
    def es_gate_wait(self, page: Any, seen: int, timeout_ns: int) -> int: ...
    def timerfd_create(self, clock: int, flags: int) -> int: ...
    def timerfd_settime(self, fd: int, flags: int, new: Any, old: Any) -> int: ...

ffi: _FFI
lib: _Lib
