"""jh2, which is h2 with its compression of headers in Rust, as the assigner uses it: what clients are told that they
may do, and what is kept of what they say."""

from jh2.config import H2Configuration
from jh2.connection import H2Connection
from jh2.settings import SettingCodes, Settings

STREAMS_MAX = 250
"""Requests at a time on a connection."""

KNOWN = frozenset(SettingCodes)

HEADERS_BYTES_MAX = 64 * 1024

CONFIGURATION = H2Configuration(
    client_side=False,
    header_encoding=None,
    # Of a request's headers two are read, and none is passed on; an answer's are written here, as they should be.
    validate_inbound_headers=False,
    normalize_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)

FIRST_WINDOW = 65_535
"""What a connection's window is before anybody said otherwise (RFC 9113, 6.9.2)."""


class _Known(Settings):  # type: ignore[misc]
    """A client's settings, those that mean something: h2 would keep all, and go through all of them at each frame that
    brings some."""

    def __setitem__(self, key: SettingCodes | int, value: int) -> None:
        if key in KNOWN:
            super().__setitem__(key, value)


def h2_server(body_bytes_max: int) -> H2Connection:
    """The state of a connection that is new, whose requests may have bodies of that size."""
    connection = H2Connection(CONFIGURATION)
    settings = {
        SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS_MAX,
        # A little more, so that a body that is too long is told from one that is not sent on.
        SettingCodes.INITIAL_WINDOW_SIZE: body_bytes_max + FIRST_WINDOW,
        SettingCodes.MAX_HEADER_LIST_SIZE: HEADERS_BYTES_MAX,
    }
    connection.local_settings = Settings(client=False, initial_values=settings)
    connection.remote_settings = _Known(client=True)
    return connection
