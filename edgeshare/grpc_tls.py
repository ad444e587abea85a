"""gRPC over TCP: always with TLS, and bounded in what a stranger costs."""

from collections.abc import Callable
from typing import cast

import grpc
from grpc.aio import Server

from edgeshare.contract.address import join_address, parse_address
from edgeshare.contract.errors import Unavailable
from edgeshare.rpc import STRANGERS, Context
from edgeshare.tls_files import Held, Pems, TlsFiles

AGE_MS = 3_600_000
"""Who has a certificate that is let in no more keeps no connection longer."""

SERVER_OPTIONS = (
    *STRANGERS,
    ("grpc.max_connection_age_ms", AGE_MS),
    ("grpc.max_connection_age_grace_ms", AGE_MS),
    # Two that listen at one port would each be given some of the calls, and neither be told.
    ("grpc.so_reuseport", 0),
)
"""Of a server that anybody may reach over TCP."""


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
