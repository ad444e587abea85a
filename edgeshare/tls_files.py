"""A certificate, its key and who signs for the other side, as files of a mounted Secret: loaded, and read anew when
they change; and who is let in by the names in one."""

import logging
import ssl
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from time import monotonic

from pydantic import BaseModel, ConfigDict

from edgeshare.contract.errors import InvalidRequest
from edgeshare.log_trouble import Trouble

logger = logging.getLogger(__name__)

READ_AGAIN_S = 1.0
"""A changed Secret takes the kubelet a minute to bring: this is soon enough, and a flood of handshakes reads no file
more often."""

Held = tuple[bytes, bytes, bytes | None]
"""Key, certificate and authority."""


class TlsFiles(BaseModel):
    """Where the files lie that a Secret was mounted as; PEM."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    certificate: Path
    """The own one, with those between it and its authority."""

    private_key: Path
    """The key of the certificate, not encrypted."""

    authority: Path | None = None
    """Who signed the certificates that the other side has to show. None: it shows none."""


class Pems:
    """What such files hold. Safe for several threads."""

    def __init__(self, files: TlsFiles) -> None:
        """Raises InvalidRequest, naming the file, where they cannot be used."""
        self._files = files
        self._lock = threading.Lock()
        self._read_at_s = monotonic()
        self._trouble = Trouble(logger, "the certificates hold as they were", "the certificates' files are read again")
        self._found = self._held = self._contents()
        self._check()

    @property
    def held(self) -> Held:
        """What the files hold now, or, while that cannot be used, what they held before. They are looked at once in
        READ_AGAIN_S at most."""
        with self._lock:
            if monotonic() >= self._read_at_s + READ_AGAIN_S:
                self._read_at_s = monotonic()
                self._look()
            return self._held

    def _look(self) -> None:
        try:
            found = self._contents()
            if found == self._held:
                self._trouble.over()
            if found == self._found:
                return
            self._found = found
            self._check()
        except InvalidRequest as error:
            self._trouble.fails(error)
            return
        self._trouble.over()
        self._held = found
        logger.info("new certificates hold, for connections that are made from now on")

    def _contents(self) -> Held:
        files = self._files
        authority = None if files.authority is None else _content(files.authority)
        return _content(files.private_key), _content(files.certificate), authority

    def _check(self) -> None:
        """gRPC would take anything, and fail at each handshake without a word."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_pair(context, self._files.certificate, self._files.private_key)
        if self._files.authority is not None:
            load_authority(context, self._files.authority, "authority")


def load_pair(context: ssl.SSLContext, certificate: Path, private_key: Path, prefix: str = "") -> None:
    """The own certificate. Raises InvalidRequest, by the keys' names after ``prefix``, where it cannot be used."""
    try:
        # With no password OpenSSL would ask at the terminal for that of an encrypted key.
        context.load_cert_chain(certificate, private_key, password="")
    except (OSError, ValueError) as error:
        files = f"{prefix}certificate {certificate} with {prefix}private_key {private_key}"
        raise InvalidRequest(f"{files}: cannot be used: {_why(error)}") from error


def load_authority(context: ssl.SSLContext, authority: Path, key: str) -> None:
    """Who signs for the other side. Raises InvalidRequest, by the key's name, where it cannot be used."""
    try:
        context.load_verify_locations(authority)
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{key} {authority}: cannot be used: {_why(error)}") from error


def why_not_let_in(names: Sequence[str], let_in: Collection[str], key: str) -> str:
    """Why who shows a certificate of these common names is not let in, by the names that are and the key that lists
    them; empty where he is."""
    if names and frozenset(let_in).issuperset(names):
        return ""
    # Theirs may be anything, line ends too.
    came, known = ", ".join(map(repr, names)) or "nobody", ", ".join(sorted(let_in))
    return f"the client's certificate names {came}: let in are {known} ({key})"


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{file}: cannot be read: {error.strerror}") from error


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "it is no PEM"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
