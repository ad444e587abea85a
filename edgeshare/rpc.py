"""How errors cross gRPC, in both directions; and what a server that anybody may reach lets a stranger cost."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc.aio import ServicerContext

from edgeshare.contract.errors import (
    AlreadyExists,
    EdgeshareError,
    Forbidden,
    InvalidRequest,
    NoRoom,
    NotFound,
    Unauthenticated,
    Unavailable,
)

Context = ServicerContext[Any, Any]
"""A call, whatever goes and comes in it."""

OWN_POOL = [("grpc.use_local_subchannel_pool", 1)]
"""For a channel made for one call: a connection that it shared with the one before would sit out gRPC's back-off when
who answers there has started anew."""

CONNECTIONS_MAX = 64
"""At a time, at one address or socket; those in the handshake count."""
HANDSHAKE_MS = 3_000
"""A handshake is two ways there and back and some milliseconds."""
IDLE_MS = 60_000
"""A connection without a call ends after so long."""
METADATA_BYTES = 32 << 10
"""A token of a service account has 1 KiB, and one of a person with many groups ten times as much."""
REQUEST_BYTES = 4 << 10
"""All that can be asked for is a few names."""

STRANGERS = (
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
    ("grpc.max_connection_idle_ms", IDLE_MS),
    ("grpc.max_concurrent_streams", CONNECTIONS_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES),
    ("grpc.max_receive_message_length", REQUEST_BYTES),
)
"""The options of a server that anybody may reach (grpc, channel_arg_names.h)."""

CODES: dict[type[EdgeshareError], grpc.StatusCode] = {
    InvalidRequest: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    NoRoom: grpc.StatusCode.RESOURCE_EXHAUSTED,
    AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Forbidden: grpc.StatusCode.PERMISSION_DENIED,
}
"""What a server answers for each of our errors."""

SAID_MAX = 300
"""Characters of what another process says of its failure."""

ERRORS = {code: kind for kind, code in CODES.items()}
"""What a client raises for each answer; any other answer is Unavailable, because no valid call gets one."""


def status_code(error: EdgeshareError) -> grpc.StatusCode:
    """The code with which a server tells this error."""
    return CODES.get(type(error), grpc.StatusCode.INTERNAL)


def error_from(code: grpc.StatusCode, text: str) -> EdgeshareError:
    """The error that a server told with this code and text."""
    return ERRORS.get(code, Unavailable)(text)


def connect_error(path: Path) -> OSError | None:
    """Why nobody can connect to a Unix socket now; None: somebody listens there. gRPC has one code, UNAVAILABLE, for
    that, for a connection that broke, and for what a server says itself. Returns at once."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
            probe.connect(os.fspath(path))
    except BlockingIOError:
        # So many wait to be let in that no more fit.
        return None
    except OSError as error:
        return error
    return None


@asynccontextmanager
async def errors_told(context: Context) -> AsyncIterator[None]:
    """Ends the call with our error's code and text."""
    try:
        yield
    except EdgeshareError as error:
        await context.abort(status_code(error), str(error))
