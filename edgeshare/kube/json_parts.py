"""JSON, written, and of what is read the parts that are looked at, and no more: what nobody names is passed over, and
makes no objects. The importer of msgspec."""

import json
from collections.abc import Callable
from typing import Any

import msgspec


def reader_of(shape: Any) -> Callable[[bytes], Any]:
    """What reads JSON of a shape into what json.loads would make of it, less the fields of an object that the TypedDict
    which is its shape does not name. It raises ValueError for what is not of that shape, or nested too deeply."""
    decode = msgspec.json.Decoder(shape).decode

    def read(text: bytes) -> Any:
        try:
            return decode(text)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error

    return read


def write(thing: object) -> bytes:
    """As JSON, without a space; ``thing`` is what json.loads may give."""
    try:
        return msgspec.json.encode(thing)
    except UnicodeEncodeError:
        # Half of a surrogate pair, which json.loads lets through, and UTF-8 does not have.
        return json.dumps(thing, separators=(",", ":")).encode()
