"""A kubeconfig that cannot be used is said in a line, with its file and what to do; a token's file is read as it is
now."""

import asyncio
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import Kube
from tests.kit.apiserver.answering_server import SAFETY_S, Server, answer, thing

Json = dict[str, Any]


def written(
    path: Path, cluster: Json | None = None, user: Json | None = None, context: Json | None = None, current: str = "x"
) -> Path:
    """A kubeconfig with one of each."""
    content = {
        "clusters": [] if cluster is None else [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {"token": "a.b.c"}}],
        "contexts": [{"name": "x", "context": context or {"cluster": "c", "user": "u"}}],
        "current-context": current,
    }
    path.write_text(json.dumps(content))
    return path


def text(content: str) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        path.write_text(content)
        return path

    return write


def plugin(command: str) -> Json:
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never"}}


SERVER = {"server": "https://127.0.0.1:1"}


def with_authority(path: Path) -> Path:
    authority = path.with_name("ca.crt")
    authority.write_text("no certificate")
    return written(path, SERVER | {"certificate-authority": str(authority)})


def with_failing_plugin(path: Path) -> Path:
    program = path.with_name("plugin")
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return written(path, SERVER, plugin("./plugin"))


UNUSABLE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no file": (lambda path: path, "there is no such file"),
    "no YAML": (text("a: [b\nc"), "while parsing"),
    "no text": (lambda path: path.write_bytes(b"\xff") and path, "decode"),
    "nothing": (text(""), "empty"),
    "text": (text("kubeconfig"), "not as kubeconfigs are"),
    "a list": (text("[1]"), "not as kubeconfigs are"),
    "no context": (lambda path: written(path, SERVER, current="y"), "name y in .*contexts"),
    "no current context": (lambda path: written(path, SERVER, current=""), "no current context"),
    "no cluster": (written, "name c in .*clusters"),
    "no server": (lambda path: written(path, {}), "its cluster c has no server"),
    "a context of nothing": (lambda path: written(path, SERVER, context={"user": "u"}), "not as|cluster"),
    "no such authority": (lambda path: written(path, SERVER | {"certificate-authority": "none.crt"}), "none.crt"),
    "no authority": (with_authority, "certificate authority is no certificate"),
    "no base64": (lambda path: written(path, SERVER | {"certificate-authority-data": "a"}), "base64|padding|encoded"),
    "no exec plugin": (lambda path: written(path, SERVER, plugin("no-such")), "no-such is not on the PATH: install it"),
    "a failing exec plugin": (with_failing_plugin, "plugin ./plugin gives no credentials: run it to see why"),
    "no token file": (lambda path: written(path, SERVER, {"tokenFile": "none"}), "none"),
}


@pytest.mark.parametrize("reach", [Kube.from_kubeconfig, Calls], ids=["thread", "event loop"])
@pytest.mark.parametrize(("write", "why"), UNUSABLE.values(), ids=UNUSABLE)
async def test_one_that_cannot_be_used_is_said_in_a_line(
    tmp_path: Path, write: Callable[[Path], Path], why: str, reach: Callable[[Path], object]
) -> None:
    path = write(tmp_path / "kubeconfig")
    with pytest.raises(Unavailable, match=f"cannot be used as a kubeconfig: .*({why})") as raised:
        reach(path)
    said = str(raised.value)
    assert said.startswith(str(path))
    assert said.endswith(": mend it, or name another one")
    assert "\n" not in said


@pytest.mark.parametrize("way", ["thread", "event loop"])
async def test_a_tokens_file_is_read_as_it_is_now(server: Server, tmp_path: Path, way: str) -> None:
    server.answers = [answer(thing("a", "1"))] * 2
    token = tmp_path / "token"
    token.write_text("a.b.c\n")
    path = written(tmp_path / "kubeconfig", {"server": server.url}, {"tokenFile": "token"})
    kube, calls = Kube.from_kubeconfig(path), Calls(path)

    async def ask() -> object:
        if way == "thread":
            return await asyncio.to_thread(kube.node, "n")
        return await calls.call("GET", "/api/v1/nodes/n")

    async with asyncio.timeout(SAFETY_S), calls.open():
        await ask()
        token.write_text("d.e.f\n")
        await ask()
        for content in (b"", b"a\r\nHost: elsewhere", b"\xff"):
            token.write_bytes(content)
            with pytest.raises(Unavailable, match="token"):
                await ask()
        token.unlink()
        with pytest.raises(Unavailable, match=str(token)):
            await ask()
    assert [each.authorization for each in server.asked] == ["Bearer a.b.c", "Bearer d.e.f"]


async def test_a_token_in_the_kubeconfig_is_before_its_file(server: Server, tmp_path: Path) -> None:
    server.answers = [answer(thing("a", "1"))]
    (tmp_path / "token").write_text("d.e.f\n")
    user = {"token": "a.b.c", "tokenFile": "token"}
    kube = Kube.from_kubeconfig(written(tmp_path / "kubeconfig", {"server": server.url}, user))
    await asyncio.to_thread(kube.node, "n")
    assert [each.authorization for each in server.asked] == ["Bearer a.b.c"]
