"""What the commands have in common that run on until they are told to end."""

import logging
from pathlib import Path
from time import monotonic_ns

import click

from edgeshare.log_limit import LogLimit

GRPC_SERVER = "grpc._cython.cygrpc"
"""The logger by which gRPC tells of whatever ends a call of its server."""
UNREAD = "DecodeError"
"""What that is where a message cannot be read: by name, since not every daemon has a server, and protobuf for it."""

config_option = click.option(
    "--config", "config_path", type=click.Path(path_type=Path), help="YAML file; defaults if absent."
)


class EndedCalls(logging.Filter):
    """What ended a call, now and then, and how often it went unsaid: whoever reaches a server makes as many calls as he
    likes. A message that cannot be read is his doing, and one line."""

    def __init__(self) -> None:
        super().__init__()
        self._unread, self._failed = LogLimit(), LogLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is said; how, too."""
        kind = record.exc_info[0] if isinstance(record.exc_info, tuple) else None
        unread = kind is not None and kind.__name__ == UNREAD
        more = (self._unread if unread else self._failed).ending(monotonic_ns())
        if more is None:
            return False
        text = "a call is refused: its message cannot be read" if unread else record.getMessage()
        record.msg, record.args = f"{text}{more}", None
        if unread:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = None
        return True


def log() -> None:
    """What they have to say goes to stderr."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger(GRPC_SERVER).addFilter(EndedCalls())
