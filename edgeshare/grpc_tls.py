"""gRPC over TCP: always with TLS, and bounded in what a stranger costs."""

from collections.abc import Callable
from typing import cast

import grpc
from grpc.aio import Server

from edgeshare.contract.address import join_address, parse_address
from edgeshare.contract.errors import Unavailable
from edgeshare.rpc import Context
from edgeshare.tls_files import Held, Pems, TlsFiles

CONNECTIONS_MAX = 64
"""At a time, at one address; those in the handshake count."""
HANDSHAKE_MS = 3_000
"""A handshake is two ways there and back and some milliseconds."""
IDLE_MS = 60_000
"""A connection without a call ends after so long."""
AGE_MS = 3_600_000
"""Who has a certificate that is let in no more keeps no connection longer."""
METADATA_BYTES = 32 << 10
"""A token of a service account has 1 KiB, and one of a person with many groups ten times as much."""
REQUEST_BYTES = 4 << 10
"""All that can be asked for is a few names."""

SERVER_OPTIONS = (
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
    ("grpc.max_connection_idle_ms", IDLE_MS),
    ("grpc.max_connection_age_ms", AGE_MS),
    ("grpc.max_connection_age_grace_ms", AGE_MS),
    ("grpc.max_concurrent_streams", CONNECTIONS_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES),
    ("grpc.max_receive_message_length", REQUEST_BYTES),
    # Two that listen at one port would each be given some of the calls, and neither be told.
    ("grpc.so_reuseport", 0),
)
"""Of a server that anybody may reach (grpc, channel_arg_names.h)."""


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Of a server, to which clients have to show certificates where there is an authority; a handshake goes by what the
    files hold then. Raises InvalidRequest for files that cannot be used."""
    pems = Pems(files)
    shown = pems.held

    def at_handshake() -> grpc.ServerCertificateConfiguration | None:
        # A thread of gRPC's asks: the loop does not wait for a file. None: as before, which the stubs do not know.
        nonlocal shown
        held = pems.held
        if held == shown:
            return None
        shown = held
        return _configuration(held)

    asked = cast(Callable[[], grpc.ServerCertificateConfiguration], at_handshake)
    return grpc.dynamic_ssl_server_credentials(_configuration(shown), asked, files.authority is not None)


def listen(server: Server, address: str, credentials: grpc.ServerCredentials) -> int:
    """Has a server listen at ``host:port``; returns the port. Raises Unavailable where it cannot."""
    host, port = parse_address(address)
    try:
        return server.add_secure_port(join_address(host or "::", port), credentials)
    except RuntimeError as error:
        raise Unavailable(f"address {address}: cannot be listened on; choose another") from error


def common_names(context: Context) -> tuple[str, ...]:
    """The common names of the certificate that the other side of a call has shown."""
    names = context.auth_context().get("x509_common_name", ())
    return tuple(name.decode(errors="replace") for name in names)


def _configuration(held: Held) -> grpc.ServerCertificateConfiguration:
    key, certificate, authority = held
    return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)
