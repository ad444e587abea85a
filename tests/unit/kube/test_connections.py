"""Over which connections an API server is asked: when one is used again, and what is never taken for an answer."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube import connections
from edgeshare.kube.answer import PENDING_BYTES_MAX
from edgeshare.kube.calls import Calls
from edgeshare.kube.connections import Connections
from tests.kit.apiserver.answering_server import (
    END,
    HANG_UP,
    PODS,
    SAFETY_S,
    Server,
    answer,
    chunks,
    thing,
)
from tests.kit.apiserver.certificates import Authority
from tests.kit.apiserver.kubeconfig import kubeconfig
from tests.kit.apiserver.watches import FIRST, NO_WATCHES, changes

A = answer(thing("a", "1"))
B = answer(thing("b", "2"))


async def test_what_was_answered_whole_leaves_its_connection_to_the_next(server: Server, calls: Calls) -> None:
    server.answers = [A, answer(b"{}", 404), chunks(b"{}") + END, answer(thing("c", "3"), 201)]
    over = set()
    for expected in (thing("a", "1"), None, {}, thing("c", "3")):
        assert await calls.call("POST", PODS, {}) == expected
        over |= server.connections
    assert len(over) == 1


async def test_what_is_asked_at_a_time_has_a_connection_each(server: Server, calls: Calls) -> None:
    server.answers = [A, A, A]
    found = await asyncio.gather(*(calls.call("GET", PODS) for _ in range(3)))
    assert found == [thing("a", "1")] * 3
    assert len(server.connections) == 3


async def test_no_more_are_opened_than_there_may_be(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 2)
    calls = Calls(kubeconfig(tmp_path / "few", {"server": server.url}))
    server.answers = [A] * 5
    async with calls.open(), asyncio.timeout(SAFETY_S):
        await asyncio.gather(*(calls.call("GET", PODS) for _ in range(5)))
        assert len(server.connections) == 2
        # Nor does one that was given up take another's place for ever.
        for _ in range(3):
            with pytest.raises(Unavailable):
                await calls.call("GET", PODS, timeout_s=0.01)
        server.answers = [A]
        assert await calls.call("GET", PODS) == thing("a", "1")


async def test_one_that_was_not_used_for_long_is_not_used_again(
    server: Server, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [A, B]
    await calls.call("GET", PODS)
    (first,) = server.connections
    monkeypatch.setattr(connections, "KEPT_S", -1.0)
    assert await calls.call("GET", PODS) == thing("b", "2")
    assert server.connections - {first}
    async with asyncio.timeout(SAFETY_S):
        await asyncio.wait([first])


UNASKED = {
    "with the answer": A + B,
    "after it": A + chunks(b"[]"),
    "half of one": A + b"HTTP/1.1 200",
    "it is to be closed": answer(thing("a", "1"), head="Connection: close\r\n"),
}


@pytest.mark.parametrize("answered", UNASKED.values(), ids=UNASKED)
async def test_what_nobody_asked_for_is_nobodys_answer(server: Server, calls: Calls, answered: bytes) -> None:
    server.answers = [answered, answer(thing("c", "3"))]
    assert await calls.call("GET", PODS) == thing("a", "1")
    (first,) = server.connections
    async with asyncio.timeout(SAFETY_S):
        await asyncio.wait([first])
    assert await calls.call("GET", PODS) == thing("c", "3")


async def test_what_comes_when_nothing_was_asked_ends_the_connection(tmp_path: Path) -> None:
    was_answered, ended = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(A)
        await was_answered.wait()
        writer.write(B)
        await reader.read()
        ended.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        calls = Calls(kubeconfig(tmp_path / "kubeconfig", {"server": url}))
        async with calls.open(), asyncio.timeout(SAFETY_S):
            assert await calls.call("GET", PODS) == thing("a", "1")
            was_answered.set()
            await ended.wait()


async def test_what_goes_before_an_answer_is_passed_over(server: Server, calls: Calls) -> None:
    server.answers = [b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + A, B]
    assert await calls.call("GET", PODS) == thing("a", "1")
    before = set(server.connections)
    assert await calls.call("GET", PODS) == thing("b", "2")
    assert server.connections == before


NO_ANSWERS = {
    "a head without end": (b"HTTP/1.1 200 OK\r\nA: " + b"a" * 1024 * 1024, "an answer's head"),
    "another protocol": (b"HTTP/1.1 101 Said\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "HTTP/1.1"),
    "no end, and no length": (b"HTTP/1.1 200 OK\r\n\r\n{}" + HANG_UP, "has ended"),
    "encoded": (answer(b"{}", head="Content-Encoding: br\r\n"), "encoded"),
}


@pytest.mark.parametrize(("answered", "why"), NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_what_is_no_answer_ends_its_connection(server: Server, calls: Calls, answered: bytes, why: str) -> None:
    server.answers = [answered]
    async with asyncio.timeout(SAFETY_S):
        with pytest.raises(Unavailable, match=f"cannot be asked.*{why}"):
            await calls.call("GET", PODS)
    await server.left()


async def test_no_more_is_read_of_an_answer_than_is_taken(server: Server) -> None:
    """The server's own buffers fill up: it cannot send on."""
    server.answers = [answer(b"x" * 64 * PENDING_BYTES_MAX)]
    asked = Connections(server.url, ssl.create_default_context(), None)
    async with asyncio.timeout(SAFETY_S):
        with closing(await asked.ask("GET", PODS, {}, None)) as one:
            some = await one.some()
            assert len(some) <= 2 * PENDING_BYTES_MAX
            whole = len(some)
            while some := await one.some():
                assert len(some) <= 2 * PENDING_BYTES_MAX
                whole += len(some)
                # As one does who takes his time: more could come meanwhile.
                for _ in range(5):
                    await asyncio.sleep(0)
    assert whole == 64 * PENDING_BYTES_MAX
    await asked.close()


async def test_what_is_told_at_once_is_told_with_pauses(server: Server, calls: Calls) -> None:
    """Many changes, read at a time, do not keep the loop from everything else."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    count = 50
    server.answers = [chunks(FIRST * count) + END]
    beside = asyncio.create_task(others())
    between = []
    await calls.changes(PODS, "", "7", lambda change: between.append(turns))
    beside.cancel()
    assert len(between) == count
    assert all(after > before for before, after in pairwise(between))


@pytest.mark.parametrize("server_name", [None, "kubernetes.default"])
async def test_a_certificate_is_shown_and_one_is_expected(tmp_path: Path, server_name: str | None) -> None:
    authority = Authority(tmp_path)
    host = f"DNS:{server_name}" if server_name else "IP:127.0.0.1"
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(*authority.issue("server", "server", hosts=(host,)))
    context.verify_mode = ssl.CERT_REQUIRED
    shown, key = authority.issue("client", "client")
    async with Server().running(context) as server:
        cluster = {"server": server.url, "certificate-authority": str(authority.certificate)}
        path = kubeconfig(tmp_path / "kubeconfig", cluster | ({"tls-server-name": server_name} if server_name else {}))
        content = json.loads(path.read_text())
        content["users"][0]["user"] = {"client-certificate": str(shown), "client-key": str(key)}
        path.write_text(json.dumps(content))
        server.answers = [A]
        calls = Calls(path)
        async with calls.open():
            assert await calls.call("GET", PODS) == thing("a", "1")
    assert [each.authorization for each in server.asked] == [""]


@pytest.mark.parametrize("url", ["https://", "ftp://127.0.0.1", "https://127.0.0.1:x", "https://a b", "https://a\r\nb"])
def test_a_url_that_is_none_is_said(tmp_path: Path, url: str) -> None:
    with pytest.raises(Unavailable, match="URL"):
        Calls(kubeconfig(tmp_path / "kubeconfig", {"server": url}))


async def test_a_servers_path_goes_before_what_is_asked(server: Server, tmp_path: Path) -> None:
    server.answers = [A]
    calls = Calls(kubeconfig(tmp_path / "kubeconfig", {"server": f"{server.url}/clusters/c"}))
    async with calls.open():
        await calls.call("GET", f"{PODS}?limit=1")
    (asked,) = server.asked
    assert (asked.path, asked.query) == (f"/clusters/c{PODS}", {"limit": "1"})


@asynccontextmanager
async def proxy(asked: list[str]) -> AsyncIterator[str]:
    """One that lets through what asks for a tunnel; ``asked`` is where to."""
    tasks: set[asyncio.Task[None] | None] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while some := await reader.read(65536):
                writer.write(some)
                await writer.drain()
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        method, where = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[:2]
        asked.append(f"{method} {where}")
        parts = urlsplit(f"//{where}")
        there, back = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(copy(reader, back), copy(there, writer), return_exceptions=True)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        for each in filter(None, tasks):
            each.cancel()


async def test_through_a_proxy_it_is_as_without_one(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("server", "server", hosts=("IP:127.0.0.1",)))
    tunnels: list[str] = []
    async with Server().running(context) as server, proxy(tunnels) as url:
        cluster = {"server": server.url, "certificate-authority": str(authority.certificate), "proxy-url": url}
        calls = Calls(kubeconfig(tmp_path / "kubeconfig", cluster))
        items = {"metadata": {"resourceVersion": "7"}, "items": [thing("a", "1")]}
        whole = chunks(FIRST, FIRST) + END
        server.answers = [A, answer({"message": "because"}, 409), answer(items), whole, NO_WATCHES["ends in a line"]]
        async with calls.open(), asyncio.timeout(SAFETY_S):
            assert await calls.call("POST", PODS, {"a": 1}) == thing("a", "1")
            with pytest.raises(Unavailable, match="409 because"):
                await calls.call("GET", PODS)
            assert await calls.objects(PODS, "", lambda found: found) == ([thing("a", "1")], "7")
            assert len(await changes(calls)) == 2
            with pytest.raises(Unavailable, match="broke off"):
                await changes(calls)
            server.answers = [HANG_UP]
            with pytest.raises(Unavailable, match="cannot be asked"):
                await calls.call("GET", PODS)
    assert set(tunnels) == {f"CONNECT {urlsplit(server.url).netloc}"}
    assert json.loads(server.asked[0].body) == {"a": 1}
    assert {each.authorization for each in server.asked} == {"Bearer a.b.c"}
