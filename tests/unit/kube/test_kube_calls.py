"""What is asked of an API server from the event loop, against a server on a real socket that answers as the test has
it. That it suits a real API server is shown in tests/assigner."""

import asyncio
import datetime
import json
import logging
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from kubernetes.config import incluster_config

from edgeshare.contract.errors import Unavailable
from edgeshare.kube import calls as kube_calls
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import WATCH_S
from edgeshare.kube.messages import PAGE, Expired
from sharemgr.cluster.replica import following
from sharemgr.cluster.replica.following import follow
from tests.kit.apiserver.answering_server import (
    BOUND,
    END,
    EXPIRED,
    HANG_UP,
    LARGEST,
    PODS,
    SAFETY_S,
    TOO_OLD,
    TOO_SOON,
    Json,
    Server,
    answer,
    change,
    chunks,
    kubeconfig,
    name_of,
    page,
    thing,
    watch,
)
from tests.kit.apiserver.certificates import Authority


async def changes(calls: Calls) -> list[Json]:
    """What is told until the watch ends."""
    async with asyncio.timeout(SAFETY_S):
        return [each async for each in calls.changes(PODS, BOUND, "7")]


async def test_a_watch_tells_each_change_until_it_ends(server: Server, calls: Calls) -> None:
    largest = change("x" * LARGEST, "9")
    text = b"".join(json.dumps(each).encode() + b"\n" for each in (change("a", "8", "ADDED"), largest))
    server.answers = [chunks(text[:20], text[20:100_000], text[100_000:]) + END]
    assert await changes(calls) == [change("a", "8", "ADDED"), largest]
    (asked,) = server.asked
    assert asked.query == {
        "watch": "1",
        "fieldSelector": BOUND,
        "resourceVersion": "7",
        "allowWatchBookmarks": "1",
        "timeoutSeconds": str(WATCH_S),
    }


FIRST = json.dumps(change("b", "8")).encode() + b"\n"
GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
NO_WATCHES = {
    "breaks off in a line": chunks(FIRST, b'{"type": "MOD') + HANG_UP,
    "ends in a line": chunks(FIRST, b'{"type": "MOD') + END,
    "ends with an error": chunks(FIRST, b'{"type": "ERROR", "object": {"code": 500, "message": "away"}}\n'),
    "ends with half an error": chunks(FIRST, b'{"type": "ERROR"}\n'),
    "is nonsense": chunks(FIRST, b"\xff\n"),
    "is a list": chunks(FIRST, b"[1]\n"),
    "is an endless line": chunks(FIRST, b"x" * 8 * 1024 * 1024),
}


@pytest.mark.parametrize("answered", NO_WATCHES.values(), ids=NO_WATCHES)
async def test_a_watch_that_cannot_go_on_is_unavailable(server: Server, calls: Calls, answered: bytes) -> None:
    server.answers = [answered]
    with pytest.raises(Unavailable) as raised:
        await changes(calls)
    assert type(raised.value) is Unavailable


async def test_a_watch_that_is_not_read_on_is_closed(server: Server, calls: Calls) -> None:
    server.answers = [NO_WATCHES["is an endless line"]]
    with pytest.raises(Unavailable, match="no end"):
        await changes(calls)
    await server.left()


@pytest.mark.parametrize(
    "answered",
    [
        HANG_UP,
        b"nonsense\r\n\r\n",
        answer({"message": "not yours"}, 403),
        answer({"message": "away"}, 500),
        chunks(FIRST) + b"nonsense\r\n",
        GZIP + b"Transfer-Encoding: chunked\r\n\r\n8\r\nnonsense\r\n",
    ],
    ids=["none", "no HTTP", "403", "500", "no chunk", "no gzip"],
)
async def test_what_is_no_watch_is_unavailable(server: Server, calls: Calls, answered: bytes) -> None:
    server.answers = [answered, HANG_UP]
    with pytest.raises(Unavailable) as raised:
        await changes(calls)
    assert type(raised.value) is Unavailable


@pytest.mark.parametrize("answered", [TOO_OLD, EXPIRED], ids=["at once", "as a change"])
async def test_a_version_that_is_too_old_is_told(server: Server, calls: Calls, answered: bytes) -> None:
    server.answers = [answered]
    with pytest.raises(Expired):
        await changes(calls)


@pytest.mark.parametrize(
    ("limit", "answers"), [("CALL_TIMEOUT_S", []), ("WATCH_S", [watch()])], ids=["no answer", "no change"]
)
async def test_a_watch_is_waited_on_for_so_long(
    server: Server, calls: Calls, monkeypatch: pytest.MonkeyPatch, limit: str, answers: list[bytes]
) -> None:
    monkeypatch.setattr(kube_calls, "CALL_TIMEOUT_S", 0.1 if limit == "CALL_TIMEOUT_S" else SAFETY_S)
    monkeypatch.setattr(kube_calls, "WATCH_S", 0.1 - SAFETY_S if limit == "WATCH_S" else SAFETY_S)
    server.answers = answers
    with pytest.raises(Unavailable, match="no answer in time"):
        await changes(calls)
    await server.left()


class Followed:
    """What follow tells of the pods' names."""

    def __init__(self, calls: Calls, changed: Callable[[str, str], None] | None = None) -> None:
        self.told: asyncio.Queue[tuple[str, list[str]]] = asyncio.Queue()
        changed = changed or (lambda kind, name: self.told.put_nowait((kind, [name])))
        self.task = asyncio.create_task(
            follow(calls, PODS, BOUND, name_of, lambda names: self.told.put_nowait(("LISTED", names)), changed)
        )

    async def next(self) -> tuple[str, list[str]]:
        async with asyncio.timeout(SAFETY_S):
            return await self.told.get()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task], timeout=SAFETY_S)
        assert self.task.cancelled()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many failures `follow` would have paused; it does not."""
    pauses: list[int] = []

    def pause_s(failures: int) -> float:
        pauses.append(failures)
        return 0

    monkeypatch.setattr(following, "pause_s", pause_s)
    return pauses


def versions(server: Server) -> list[str | None]:
    """From which each watch was asked for; None for a list."""
    return [each.query.get("resourceVersion") for each in server.asked]


async def test_what_is_followed_goes_on_where_a_watch_ended(server: Server, calls: Calls, pauses: list[int]) -> None:
    bookmark = change("", "9", "BOOKMARK")
    server.answers = [
        page("a", version="5"),
        watch(change("b", "6", "ADDED"), bookmark) + END,
        watch() + END,
        watch(change("c", "12", "DELETED")),
    ]
    followed = Followed(calls)
    assert [await followed.next() for _ in range(3)] == [("LISTED", ["a"]), ("ADDED", ["b"]), ("DELETED", ["c"])]
    await followed.stop()
    assert versions(server) == [None, "5", "9", "9"]
    assert server.asked[0].query == {"fieldSelector": BOUND, "limit": str(PAGE)}
    assert pauses == [0, 0]


NO_OBJECTS = {
    "is no change": chunks(FIRST, b"{}\n"),
    "is of nothing": chunks(FIRST, b'{"type": "ADDED", "object": null}\n'),
}


@pytest.mark.parametrize("answered", (NO_WATCHES | NO_OBJECTS).values(), ids=NO_WATCHES | NO_OBJECTS)
async def test_what_is_followed_goes_on_where_a_watch_broke_off(
    server: Server, calls: Calls, pauses: list[int], caplog: pytest.LogCaptureFixture, answered: bytes
) -> None:
    caplog.set_level(logging.INFO)
    server.answers = [page("a", version="5"), answered, TOO_SOON, TOO_SOON, watch(change("c", "9")) + END]
    followed = Followed(calls)
    assert [await followed.next() for _ in range(3)] == [("LISTED", ["a"]), ("MODIFIED", ["b"]), ("MODIFIED", ["c"])]
    async with asyncio.timeout(SAFETY_S):
        await server.silent.wait()
    await followed.stop()
    assert versions(server) == [None, "5", "8", "8", "8", "9"]
    assert pauses == [1, 2, 3, 0]
    said = [record.getMessage() for record in caplog.records if record.name == following.__name__]
    assert [" is not followed: " in line for line in said] == [True, True, False]
    assert said[-1] == f"{PODS} is followed again"


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ([page("a", following="more"), TOO_OLD], [None, None, None]),
        ([page("a", version="5"), TOO_OLD], [None, "5", None]),
        ([page("a", version="5"), EXPIRED], [None, "5", None]),
    ],
    ids=["a page", "a watch", "a change"],
)
async def test_what_is_too_old_is_listed_anew(
    server: Server, calls: Calls, pauses: list[int], answers: list[bytes], asked: list[str | None]
) -> None:
    server.answers = [*answers, page("b", version="8"), watch(change("c", "9"))]
    followed = Followed(calls)
    listed = [("LISTED", ["a"])] * asked.count("5")
    for told in (*listed, ("LISTED", ["b"]), ("MODIFIED", ["c"])):
        assert await followed.next() == told
    await followed.stop()
    assert versions(server) == [*asked, "8"]
    assert "continue" not in server.asked[2].query
    assert pauses == [1]


@pytest.mark.parametrize(
    "answers",
    [[], [page("a", version="5")], [page("a", version="5"), watch(change("b", "6"))]],
    ids=["its list is waited for", "its watch is waited for", "nothing happens"],
)
async def test_what_is_followed_no_more_leaves_nothing_while(
    server: Server, calls: Calls, answers: list[bytes]
) -> None:
    tasks, threads = asyncio.all_tasks(), threading.enumerate()
    server.answers = list(answers)
    followed = Followed(calls)
    for _ in answers:
        await followed.next()
    if len(answers) < 2:
        async with asyncio.timeout(SAFETY_S):
            await server.silent.wait()
    await followed.stop()
    assert asyncio.all_tasks() - tasks <= server.connections
    assert threading.enumerate() == threads
    await server.left()


async def test_what_is_followed_no_more_leaves_nothing_while_much_is_told(server: Server, calls: Calls) -> None:
    tasks, told = asyncio.all_tasks(), []

    def changed(kind: str, name: str) -> None:
        told.append(name)
        followed.task.cancel()

    server.answers = [page(version="5"), watch(*(change(str(number), "6") for number in range(100)))]
    followed = Followed(calls, changed)
    await asyncio.wait([followed.task], timeout=SAFETY_S)
    assert followed.task.cancelled()
    assert told == ["0"]
    assert asyncio.all_tasks() - tasks <= server.connections
    await server.left()


async def test_what_is_followed_no_more_ends_its_pause(
    server: Server, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    pausing = asyncio.Event()

    def pause_s(failures: int) -> float:
        pausing.set()
        return 3600

    monkeypatch.setattr(following, "pause_s", pause_s)
    server.answers = [page(version="5"), watch() + END]
    followed = Followed(calls)
    async with asyncio.timeout(SAFETY_S):
        await pausing.wait()
    await followed.stop()


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
