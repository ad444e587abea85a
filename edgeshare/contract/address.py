"""Where something is reached: ``host:port``, as options and the environment name it, and a socket's path."""

import re
from ipaddress import IPv6Address
from typing import SupportsBytes

from edgeshare.contract.errors import InvalidRequest

ADDRESS = re.compile(r"([0-9A-Za-z.-]*|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})", re.ASCII)
PORT_MAX = 65535

SOCKET_PATH_BYTES_MAX = 107
"""unix(7): sun_path has 108, the last of them zero."""


def parse_address(text: str) -> tuple[str, int]:
    """The host, without the brackets that an IPv6 address has there and empty for every address of the machine, and the
    port, 0 for any that is free. Raises ValueError for what is none."""
    parts = ADDRESS.fullmatch(text)
    if parts is None or int(parts[2]) > PORT_MAX:
        raise ValueError(
            f"has to be host:port, or :port, with a port of at most {PORT_MAX}, and an IPv6 address in brackets"
        )
    host = parts[1]
    if host.startswith("["):
        host = host[1:-1]
        IPv6Address(host)
    return host, int(parts[2])


def join_address(host: str, port: int | str) -> str:
    """An address as text, which ``parse_address`` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_socket_path(path: SupportsBytes, instead: str) -> None:
    """Raises InvalidRequest where a path is too long for a socket, and says what to do ``instead``."""
    if len(bytes(path)) > SOCKET_PATH_BYTES_MAX:
        raise InvalidRequest(
            f"{path} would be longer than the {SOCKET_PATH_BYTES_MAX} bytes of a socket's path: {instead}"
        )
