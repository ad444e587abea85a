"""Who is let in, and certificates that change as it runs: real handshakes, with certificates that openssl made."""

import asyncio
import fcntl
import logging
import os
import ssl
import subprocess
import sys
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.config import Tls
from sharemgr.cluster.server.certificates import Certificates, tls_context
from sharemgr.cluster.server.serving import Server
from tests.kit.apiserver.certificates import Authority
from tests.kit.assigner.connection import Connection
from tests.kit.processes.waiting import until_true

SCHEDULER = "system:kube-scheduler"
ANSWER = (200, '"1"')
SAFETY_S = 60
ROOT = Path(__file__).parents[2]


class Secret:
    """A mounted one: what is in it is reached by a link, and a new one takes its place at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def put(self, certificate: bytes, key: bytes, authority: bytes) -> None:
        self._count += 1
        there = self._folder / f"..{self._count}"
        there.mkdir()
        for name, content in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", authority)):
            (there / name).write_bytes(content)
            if not (self._folder / name).is_symlink():
                (self._folder / name).symlink_to(f"..data/{name}")
        (self._folder / "..next").symlink_to(there.name)
        (self._folder / "..next").rename(self._folder / "..data")

    def tls(self, *clients: str) -> Tls:
        names = (self._folder / name for name in ("tls.crt", "tls.key", "ca.crt"))
        return Tls(**dict(zip(("certificate", "private_key", "client_authority"), names, strict=True)), clients=clients)


class Running:
    """A server with the test's verb, which answers with what it got."""

    def __init__(self, tls: Tls) -> None:
        self.certificates = Certificates(tls)
        self.server = Server(
            "127.0.0.1:0", tls.clients, lambda: {"filter": self.echo}, lambda verb, status: None, lambda kind: None
        )
        self.url = ""

    async def echo(self, body: bytes) -> object:
        return body.decode()


@pytest.fixture
def secret(tmp_path: Path, authority: Authority) -> Secret:
    folder = tmp_path / "secret"
    folder.mkdir()
    secret = Secret(folder)
    certificate, key = authority.issue("server", "edgeshare", hosts=("IP:127.0.0.1",))
    secret.put(certificate.read_bytes(), key.read_bytes(), authority.certificate.read_bytes())
    return secret


@pytest.fixture
async def running(secret: Secret) -> AsyncIterator[Running]:
    running = Running(secret.tls(SCHEDULER, "somebody-else"))
    async with running.server.running(running.certificates.context) as running.url:
        keeping = asyncio.create_task(running.certificates.keep(running.server.use))
        try:
            yield running
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])


def connection(running: Running, server: Authority, own: tuple[Path, Path] | None) -> Connection:
    """Of one that trusts who signed for the server, and has a certificate of its own, or none."""
    context = ssl.create_default_context(cafile=server.certificate)
    if own is not None:
        context.load_cert_chain(*own)
    return Connection(running.url, context)


async def test_kube_schedulers_certificate_is_let_in(running: Running, authority: Authority) -> None:
    with connection(running, authority, authority.issue("scheduler", SCHEDULER)) as scheduler:
        assert (await scheduler.ask("/filter", b"1"), scheduler.server_name) == (ANSWER, "edgeshare")


async def test_a_certificate_of_another_name_gets_no_answer_and_the_log_says_why(
    running: Running, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    own = authority.issue("kubelet", "system:node:n1", group="system:nodes")
    with connection(running, authority, own) as kubelet, pytest.raises((ssl.SSLError, ConnectionError)):
        await kubelet.ask("/filter", b"1")
    assert caplog.messages == [
        "a connection of 127.0.0.1 is ended: the client's certificate names 'system:node:n1': "
        "let in are somebody-else, system:kube-scheduler (tls.clients)"
    ]


async def test_with_no_names_configured_everybody_whom_the_authority_signed_for_is_let_in(
    secret: Secret, authority: Authority
) -> None:
    running = Running(secret.tls())
    async with running.server.running(running.certificates.context) as running.url:
        with connection(
            running, authority, authority.issue("kubelet", "system:node:n1", group="system:nodes")
        ) as kubelet:
            assert await kubelet.ask("/filter", b"1") == ANSWER


async def test_who_shows_no_certificate_gets_no_answer(running: Running, authority: Authority) -> None:
    with connection(running, authority, None) as nobody, pytest.raises((ssl.SSLError, ConnectionError)):
        await nobody.ask("/filter", b"1")


async def test_a_certificate_that_another_authority_signed_is_worth_nothing(
    running: Running, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    forged = connection(running, authority, other.issue("scheduler", SCHEDULER))
    with forged, pytest.raises((ssl.SSLError, ConnectionError)):
        await forged.ask("/filter", b"1")


async def test_a_changed_secret_holds_for_new_connections_and_breaks_none(
    running: Running, secret: Secret, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    other = Authority(tmp_path / "other")
    of_old = authority.issue("scheduler", SCHEDULER)
    with connection(running, authority, of_old) as before:
        assert (await before.ask("/filter", b"1"), before.server_name) == (ANSWER, "edgeshare")
        certificate, key = other.issue("server", "edgeshare-new", hosts=("IP:127.0.0.1",))
        secret.put(certificate.read_bytes(), key.read_bytes(), other.certificate.read_bytes())
        await logged(caplog, "new certificates hold")
        # It goes by its connection, which was made before, and is told to make another.
        assert await before.ask("/filter", b"1") == ANSWER
        assert not before.is_open
    with connection(running, other, other.issue("scheduler", SCHEDULER)) as after:
        assert (await after.ask("/filter", b"1"), after.server_name) == (ANSWER, "edgeshare-new")
    # Whom the old authority signed for is not let in any more.
    with connection(running, other, of_old) as outdated, pytest.raises((ssl.SSLError, ConnectionError)):
        await outdated.ask("/filter", b"1")


@pytest.mark.parametrize("nonsense", ["certificate", "key", "authority"])
async def test_a_secret_that_cannot_be_used_changes_nothing_and_is_logged(
    running: Running,
    secret: Secret,
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    nonsense: str,
) -> None:
    caplog.set_level(logging.INFO)
    certificate, key = authority.issue("server-2", "edgeshare-2", hosts=("IP:127.0.0.1",))
    good = {"certificate": certificate, "key": key, "authority": authority.certificate}
    contents = {name: file.read_bytes() for name, file in good.items()}
    # Another's key, and what is no certificate.
    other = authority.issue("other", "other")[1].read_bytes() if nonsense == "key" else b"nonsense"
    secret.put(**{**contents, nonsense: other})
    told = await logged(caplog, "the certificates hold as they were")
    assert f"{tmp_path}/secret/{'ca.crt' if nonsense == 'authority' else 'tls.crt'}" in told
    with connection(running, authority, authority.issue("scheduler", SCHEDULER)) as scheduler:
        assert (await scheduler.ask("/filter", b"1"), scheduler.server_name) == (ANSWER, "edgeshare")
    secret.put(**contents)
    await logged(caplog, "new certificates hold")
    with connection(running, authority, authority.issue("scheduler", SCHEDULER)) as scheduler:
        assert (await scheduler.ask("/filter", b"1"), scheduler.server_name) == (ANSWER, "edgeshare-2")


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> str:
    await until_true(lambda: any(text in each for each in caplog.messages))
    return next(each for each in caplog.messages if text in each)


def test_what_is_missing_is_named(secret: Secret, tmp_path: Path) -> None:
    (tmp_path / "secret/tls.key").unlink()
    with pytest.raises(InvalidRequest, match=r"tls.private_key .*/tls.key: cannot be used: No such file") as told:
        tls_context(secret.tls(SCHEDULER))
    assert "\n" not in str(told.value)


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_password(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("server", "edgeshare", hosts=("IP:127.0.0.1",))
    locked = tmp_path / "locked.key"
    words = ["openssl", "pkey", "-aes256", "-passout", "pass:secret", "-in", str(key), "-out", str(locked)]
    subprocess.run(words, check=True, capture_output=True)
    script = f"""
from pathlib import Path
from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.server.certificates import tls_context
from sharemgr.cluster.config import Tls
try:
    tls_context(Tls(certificate=Path({str(certificate)!r}), private_key=Path({str(locked)!r})))
except InvalidRequest:
    raise SystemExit(7)
"""
    # One that asked would wait at its terminal for ever.
    ours, terminal = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONPATH": str(ROOT)},
            stdin=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            timeout=SAFETY_S,
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(ours)
    assert done.returncode == 7
