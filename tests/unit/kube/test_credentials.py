"""Whom an API server is asked as, and which is asked: a pod's token, authorities, proxies."""

import datetime
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from kubernetes.config import incluster_config

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.calls import Calls
from tests.kit.apiserver.answering_server import PODS, Server, answer, thing
from tests.kit.apiserver.certificates import Authority
from tests.kit.apiserver.kubeconfig import kubeconfig
from tests.kit.apiserver.watches import changes


@pytest.fixture
async def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Server, Path]]:
    """A server with TLS, and a pod's service account there: its folder. Its token is read anew at each call, which is
    once a minute otherwise."""
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("server", "server", hosts=("IP:127.0.0.1",)))
    (tmp_path / "token").write_text("a.b.c\n")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority.certificate))
    always = SimpleNamespace(datetime=datetime.datetime, timedelta=lambda **_: datetime.timedelta())
    monkeypatch.setattr(incluster_config, "datetime", always)
    async with Server().running(context) as server:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.url.rpartition(":")[2])
        yield server, tmp_path


@pytest.mark.parametrize("token", [None, b"", b"a\r\nHost: elsewhere", b"\xff\xfe"])
async def test_a_pods_token_is_sent_as_it_is_now_and_what_is_none_never(
    account: tuple[Server, Path], token: bytes | None
) -> None:
    server, folder = account
    server.answers = [answer(thing("a", "1"))] * 3
    calls = Calls(None)
    async with calls.open():
        await calls.call("GET", PODS)
        (folder / "token").write_text("d.e.f\n")
        await calls.call("GET", PODS)
        (folder / "token").unlink() if token is None else (folder / "token").write_bytes(token)
        with pytest.raises(Unavailable, match="token"):
            await calls.call("GET", PODS)
        with pytest.raises(Unavailable, match="token"):
            await changes(calls)
    assert [each.authorization for each in server.asked] == ["bearer a.b.c", "bearer d.e.f"]


async def test_a_server_of_another_authority_is_asked_nothing(account: tuple[Server, Path]) -> None:
    server, folder = account
    other = Authority(folder / "other")
    calls = Calls(
        kubeconfig(folder / "kubeconfig", {"server": server.url, "certificate-authority": str(other.certificate)})
    )
    async with calls.open():
        with pytest.raises(Unavailable, match="certificate"):
            await calls.call("GET", PODS)
    assert not server.asked


async def test_where_nothing_is_verified_it_is_not_read_whom_the_system_trusts(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is a quarter of a megabyte of certificates."""
    read: list[object] = []

    def note(*_: object, **more: object) -> ssl.SSLContext:
        read.append(more)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(ssl, "create_default_context", note)
    server.answers = [answer(thing("a", "1"))]
    calls = Calls(kubeconfig(tmp_path / "kubeconfig", {"server": server.url}))
    async with calls.open():
        await calls.call("GET", PODS)
    assert (len(server.asked), read) == (1, [])
    Calls(kubeconfig(tmp_path / "secure", {"server": "https://127.0.0.1:1"}))
    assert len(read) == 1


def test_a_certificate_authority_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(tmp_path / "ca.crt")}
    with pytest.raises(Unavailable, match="certificate"):
        Calls(kubeconfig(tmp_path / "kubeconfig", cluster))


async def test_a_proxy_of_the_environment_is_not_used_for_what_is_reached_without_one(
    account: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = account
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.0/8")
    server.answers = [answer(thing("a", "1"))]
    calls = Calls(None)
    async with calls.open():
        assert await calls.call("GET", PODS) == thing("a", "1")
