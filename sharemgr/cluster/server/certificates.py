"""The server's certificate and whom it lets in, from the files of a Secret. They are read anew when they change."""

import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from edgeshare.contract.errors import InvalidRequest
from edgeshare.folder_watch import FolderWatch
from edgeshare.tls_files import load_authority, load_pair
from edgeshare.waiting import first_of
from sharemgr.cluster.config import Tls
from sharemgr.cluster.issuing.signing import certificate_end
from sharemgr.cluster.server import http1, http2

logger = logging.getLogger(__name__)

SETTLE_S = 1.0
"""A changed Secret takes the kubelet a minute to bring: this is soon enough, and files that are written in place, one
after the other, are whole by then."""


PROTOCOLS = (http2.NAME, http1.NAME)


def tls_context(tls: Tls, protocols: Sequence[str] = PROTOCOLS) -> ssl.SSLContext:
    """What a handshake goes by; of the protocols the first counts that the client speaks, too. Raises InvalidRequest,
    naming the file, where that cannot be had from these files."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    load_pair(context, tls.certificate, tls.private_key, "tls.")
    if tls.client_authority is not None:
        load_authority(context, tls.client_authority, "tls.client_authority")
        context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(list(protocols))
    return context


class Certificates:
    """The certificates that are used at the moment."""

    def __init__(self, tls: Tls, protocols: Sequence[str] = PROTOCOLS) -> None:
        """Raises InvalidRequest where they cannot be used."""
        self._tls = tls
        self._protocols = protocols
        self._read = _contents(tls)
        self.context = tls_context(tls, protocols)
        self.end_s = _end_s(tls)
        """When the server's certificate holds no more, in seconds since 1970; None: that cannot be told."""

    async def keep(self, use: Callable[[ssl.SSLContext], Awaitable[None]]) -> None:
        """Calls ``use`` with what changed files make, for ever. Files that cannot be used change nothing, and are
        logged."""
        async with AsyncExitStack() as stack:
            # The folders, not the files: in a mounted Secret those are links to some below `..data`, a link too, and
            # that one alone is exchanged.
            watches = [FolderWatch(folder, SETTLE_S) for folder in {file.parent for file in self._tls.files}]
            for watch in watches:
                await stack.enter_async_context(watch.running())
            while True:
                changes = [watch.next_change() for watch in watches]
                # What changed before they were asked.
                if self._have_changed():
                    await self._take_in(use)
                await first_of(*changes)

    def _have_changed(self) -> bool:
        contents = _contents(self._tls)
        changed = contents != self._read
        self._read = contents
        return changed

    async def _take_in(self, use: Callable[[ssl.SSLContext], Awaitable[None]]) -> None:
        try:
            context = tls_context(self._tls, self._protocols)
        except InvalidRequest as error:
            logger.error("the certificates hold as they were: %s", error)
            return
        await use(context)
        self.context, self.end_s = context, _end_s(self._tls)
        logger.info("new certificates hold, for connections that are made from now on")


def common_names(certificate: Mapping[str, object]) -> tuple[str, ...]:
    """The common names in the subject of a certificate, as the ssl module gives it."""
    subject = certificate.get("subject")
    if not isinstance(subject, tuple):
        return ()
    return tuple(value for part in subject for key, value in part if key == "commonName")


def ends_s(files: Mapping[str, Path]) -> dict[str, float]:
    """When the certificates in these files hold no more, in seconds since 1970, by the same names. One that cannot be
    read is left out: whoever uses it says so in the log."""
    ends = {}
    for whose, file in files.items():
        with suppress(InvalidRequest):
            ends[whose] = certificate_end(str(file), _content(file) or b"").timestamp()
    return ends


def _end_s(tls: Tls) -> float | None:
    try:
        return certificate_end(f"tls.certificate {tls.certificate}", _content(tls.certificate) or b"").timestamp()
    except InvalidRequest as error:
        # TLS takes it, so it is served.
        logger.warning("no metric tells when the certificate ends: %s", error)
        return None


def _contents(tls: Tls) -> tuple[bytes | None, ...]:
    return tuple(map(_content, tls.files))


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        # Using it says why.
        return None
