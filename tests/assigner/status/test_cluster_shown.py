"""``edgeshare status``, ``top`` and the page of a cluster whose status is served: a real API server's tokens and
rights, the cluster part as a process, and real managers."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.kit.assigner.replicas import Replicas
from tests.kit.assigner.world import SAFETY_S, Asked, World, complete, made, node
from tests.kit.manager.testbed import Manager
from tests.kit.processes import forked

EDGESHARE = (sys.executable, "-m", "edgeshare.cli")


def options(world: World, asked: Asked, token: str, folder: Path) -> list[str]:
    """Those with which it is asked, as somebody with this token."""
    settings = json.loads(world.server.kubeconfig.read_text())
    settings["users"][0]["user"] = {"token": token}
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(settings))
    authority = world.certificates / "ca.crt"
    service = [f"--cluster-status={asked.address}", f"--cluster-status-ca={authority}"]
    return ["--cluster", f"--kubeconfig={kubeconfig}", *service]


async def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return await asyncio.to_thread(forked.run, words, SAFETY_S, loaded=forked.CLUSTER)


@asynccontextmanager
async def started(*words: str) -> AsyncIterator[asyncio.StreamReader]:
    """What a command says until it is ended."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = await asyncio.create_subprocess_exec(*EDGESHARE, *words, stdout=asyncio.subprocess.PIPE, env=environment)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(SAFETY_S):
            yield process.stdout
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def watching(
    world: World, replicas: Replicas, folder: Path, *words: str
) -> AsyncIterator[tuple[asyncio.StreamReader, Asked, Manager]]:
    """What ``top`` says of a node of the world's to somebody who may know all, who is asked, and the node's manager."""
    own = world.namespace
    with node(world, own, [(own, "web")]) as (_, manager):
        asked = await world.serve(replicas)
        token = world.of_all("all")
        await asked.until(token, complete(own))
        async with started("top", *words, *options(world, asked, token, folder)) as said:
            yield said, asked, manager


async def test_status_shows_each_nodes_shares_to_who_may_know_them(
    world: World, replicas: Replicas, tmp_path: Path
) -> None:
    a, b = world.namespace, f"{world.namespace}-b"
    with node(world, a, [(a, "web"), (b, "batch")]) as (testbed, _):
        world.pod_waits()
        asked = await world.serve(replicas)
        everybody = world.of_all("all")
        await asked.until(everybody, complete(a))
        words = options(world, asked, everybody, tmp_path)
        told = await run("status", *words)
        assert (told.returncode, told.stderr) == (0, "")
        (web,) = [re.split(" {2,}", line) for line in told.stdout.splitlines() if f" {a}/web/main " in line]
        assert web[:4] == [a, f"{a}/web/main", "0", "30 %"]
        (gpu, _) = [line for line in told.stdout.splitlines() if line.startswith(f"{a} ") and "healthy" in line]
        assert testbed.uuids[0] in gpu
        assert "60 %" in gpu
        for form in ("--json", "--yaml"):
            assert f"{a}" in (await run("status", *words, form)).stdout
        state = json.loads((await run("status", *words, "--json")).stdout)
        (mine,) = [each for each in state["nodes"] if each["node"] == a]
        assert [each["gpuPercent"] for each in mine["status"]["allocations"]] == [0, 0]
        waiting = [(each["pod"], each["asks"]) for each in state["waiting"] if each["namespace"] == a]
        assert waiting == [("late", {"edge/gpu-percent": 60})]

        own = options(world, asked, world.of_one_namespace("a", a), tmp_path)
        told = await run("status", *own, f"--namespace={a}")
        assert (told.returncode, f"{a}/web/main" in told.stdout, f"{b}/batch" in told.stdout) == (0, True, False)
        assert f"{a}/late " in told.stdout
        assert "allocated" not in told.stdout
        refused = await run("status", *own)
        assert refused.returncode == 1
        (line,) = refused.stderr.splitlines()
        assert line.startswith(f"edgeshare: --cluster-status {asked.address}: system:serviceaccount:{a}:a may not list")


async def test_what_keeps_anybody_from_asking_is_one_line(world: World, replicas: Replicas, tmp_path: Path) -> None:
    asked = await world.serve(replicas)
    words = options(world, asked, world.of_all("all"), tmp_path)
    foreign = made(tmp_path / "foreign") / "ca.crt"
    (tmp_path / "nonsense").write_text("nonsense")
    certified = f"--kubeconfig={tmp_path / 'certified'}"
    settings = json.loads(world.server.kubeconfig.read_text())
    settings["users"][0]["user"] = {}
    (tmp_path / "certified").write_text(json.dumps(settings))
    cases = {
        "--cluster-status 127.0.0.1:9: ": ["--cluster-status=127.0.0.1:9"],
        "--cluster-status nowhere: has to be host:port": ["--cluster-status=nowhere"],
        "--cluster-status :9467: expected HOST:PORT": ["--cluster-status=:9467"],
        "do --cluster-status-ca and -name fit": [f"--cluster-status-ca={foreign}"],
        "do --cluster-status-ca and -name fit its": ["--cluster-status-name=other.edgeshare.svc"],
        "nonsense: cannot be used as an authority": [f"--cluster-status-ca={tmp_path / 'nonsense'}"],
        "gone: cannot be used as an authority": [f"--cluster-status-ca={tmp_path / 'gone'}"],
        "has no token": [certified],
    }
    for said, more in cases.items():
        told = await run("status", *words, *more)
        assert told.returncode == 1, said
        (line,) = told.stderr.splitlines()
        assert said in line
    told = await run("status", *options(world, asked, "nonsense", tmp_path))
    assert told.returncode == 1
    (line,) = told.stderr.splitlines()
    assert "the API server does not know this token" in line


@pytest.mark.parametrize(
    "words",
    [
        ["--cluster", "--cluster-status=127.0.0.1:1"],
        ["--cluster-status=127.0.0.1:1", "--cluster-status-ca=x"],
        ["--cluster", "--cluster-status-ca=x"],
        ["--cluster", "--cluster-status-name=x"],
        ["--cluster", "--namespace=x"],
    ],
)
async def test_options_that_need_others_are_wrong_usage_without_them(words: list[str]) -> None:
    told = await run("status", *words)
    assert told.returncode == 2
    assert "need" in told.stderr


async def test_top_tells_use_and_since_when_a_node_is_stale(world: World, replicas: Replicas, tmp_path: Path) -> None:
    own = world.namespace
    async with watching(world, replicas, tmp_path) as (said, asked, manager):
        while not (line := (await said.readline()).decode()).startswith(f"node: {own}  owner: "):
            assert line
        assert "gpu time: 0.0 %" in line
        manager.kill()
        while not (line := (await said.readline()).decode()).startswith(f"node {own}: stale since 2"):
            assert line
        assert "its share manager does not answer at" in line
        await asked.replica.end(signal.SIGKILL)
        while not (line := (await said.readline()).decode()).startswith("as it was at "):
            assert line
        assert f"--cluster-status {asked.address}: " in line


async def test_top_tells_programs_use_and_why_it_is_not_of_now(
    world: World, replicas: Replicas, tmp_path: Path
) -> None:
    own = world.namespace
    async with watching(world, replicas, tmp_path, "--json") as (said, asked, manager):

        async def first(holds: Callable[[Any, Any], bool]) -> Any:
            while True:
                told = json.loads(await said.readline())
                if holds(told, next((each for each in told["nodes"] if each["node"] == own), None)):
                    return told

        told = await first(lambda _, mine: bool(mine) and not mine["error"])
        assert {"atNs", "waiting", "waitingUnknown"} <= told.keys()
        assert (told["stale"], told["waitingUnknown"]) == ("", "")
        manager.kill()
        await first(lambda _, mine: "its share manager does not answer" in mine["error"])
        await asked.replica.end(signal.SIGKILL)
        away = await first(lambda told, _: bool(told["stale"]))
        assert away["stale"].startswith(f"--cluster-status {asked.address}: ")
        again = json.loads(await said.readline())
        assert (again["seen"], again["atNs"]) == (away["seen"], away["atNs"])


async def test_the_page_shows_use_a_stale_node_and_a_service_that_is_away(
    world: World, replicas: Replicas, tmp_path: Path
) -> None:
    own = world.namespace
    async with watching(world, replicas, tmp_path, "--web", "--listen=127.0.0.1:0") as (said, asked, manager):
        found = re.search(r"http://\S+/", (await said.readline()).decode())
        assert found
        with await asyncio.to_thread(urlopen, f"{found[0]}events", timeout=SAFETY_S) as answer:

            def first(holds: Any) -> Any:
                for line in answer:
                    told = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: ") else {}
                    for each in told.get("picture", {}).get("nodes", ()):
                        if each["name"] == own and holds(told, each):
                            return told, each
                raise AssertionError("no more is told")

            _, mine = await asyncio.to_thread(first, lambda _, each: not each["stale"])
            (share,) = mine["devices"][0]["shares"]
            assert (share["owner"], share["used_percent"], share["state"]) == (f"{own}/web/main", 0, "idle")
            manager.kill()
            _, mine = await asyncio.to_thread(first, lambda _, each: each["stale"])
            assert mine["stale"].startswith("stale since 2")
            await asked.replica.end(signal.SIGKILL)
            told, _ = await asyncio.to_thread(first, lambda told, _: told["stale"])
            assert told["stale"].startswith(f"--cluster-status {asked.address}: ")


async def test_the_page_is_served_to_who_may_know_and_to_nobody_else(
    world: World, replicas: Replicas, tmp_path: Path
) -> None:
    own = world.namespace
    with node(world, own, [(own, "web")]):
        asked = await world.serve(replicas)
        everybody = world.of_all("all")
        await asked.until(everybody, complete(own))
        words = ("top", "--web", "--listen=127.0.0.1:0")
        unknown, few = "the API server does not know this token", "may not list the pods of all namespaces"
        cases = {"nonsense": unknown, world.token("nobody"): few, world.of_one_namespace("one", own): few}
        for token, said in cases.items():
            told = await run(*words, *options(world, asked, token, tmp_path))
            assert (told.returncode, told.stdout) == (1, ""), said
            (line,) = told.stderr.splitlines()
            assert said in line
        async with started(*words, *options(world, asked, everybody, tmp_path)) as top:
            found = re.search(r"http://\S+/", (await top.readline()).decode())
            assert found
            for path in ("", "events"):
                with await asyncio.to_thread(urlopen, f"{found[0]}{path}", timeout=SAFETY_S) as answer:
                    assert answer.status == 200
