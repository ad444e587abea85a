"""How tests ask a real API server: over a connection that is kept, and what goes wrong is said."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.apiserver.administrator import told
from tests.kit.apiserver.answering_server import PODS, Server, answer, thing
from tests.kit.apiserver.kubeconfig import kubeconfig
from tests.kit.processes.errors import NodeError

A = answer(thing("a", "1"))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server().running() as server:
        yield server


async def ask(file: Path, method: str = "GET", **said: Any) -> dict[str, Any]:
    return await asyncio.to_thread(told, file, method, PODS, **said)


async def test_one_connection_does_for_all_that_is_asked(server: Server, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "kubeconfig", {"server": server.url})
    server.answers = [A, answer({}, 201), A]
    over = set()
    for method, said, expected in (
        ("GET", None, thing("a", "1")),
        ("POST", {"kind": "Pod"}, {}),
        ("GET", None, thing("a", "1")),
    ):
        assert await ask(file, method, thing=said) == expected
        over |= server.connections
    assert len(over) == 1
    assert [asked.method for asked in server.asked] == ["GET", "POST", "GET"]
    assert server.asked[1].body == b'{"kind": "Pod"}'


async def test_a_file_that_is_written_anew_leads_to_another_server(server: Server, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "kubeconfig", {"server": "http://127.0.0.1:9"})
    with pytest.raises(NodeError, match=f"GET {PODS}: "):
        await ask(file)
    kubeconfig(file, {"server": server.url})
    os.utime(file, ns=(1, 1))
    server.answers = [A]
    assert await ask(file) == thing("a", "1")


async def test_what_is_refused_is_told_in_the_servers_words(server: Server, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "kubeconfig", {"server": server.url})
    server.answers = [answer(b"no such pod", 404)]
    with pytest.raises(NodeError, match=f"^GET {PODS}: no such pod$"):
        await ask(file)
