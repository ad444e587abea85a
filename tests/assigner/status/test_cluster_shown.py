"""``edgeshare status`` of a cluster whose status is served: a real API server's tokens and
rights, the cluster part as a process, and real managers."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from onenode.api_server import ApiServer, done
from replicas import Replicas

sys.path.append(str(Path(__file__).parent))
from world import SAFETY_S, Asked, World, complete, node

EDGESHARE = (sys.executable, "-m", "edgeshare.cli")


@pytest.fixture
def world(server: ApiServer, tmp_path: Path, own_name: str) -> World:
    return World(server, tmp_path / "certificates", own_name[-40:].strip("-"))


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
    return await asyncio.to_thread(
        subprocess.run, (*EDGESHARE, *words), capture_output=True, text=True, check=False, timeout=SAFETY_S
    )


async def test_status_shows_each_nodes_shares_to_who_may_know_them(
    world: World, replicas: Replicas, tmp_path: Path
) -> None:
    a, b = world.namespace, f"{world.namespace}-b"
    with node(world, a, [(a, "web"), (b, "batch")]) as (testbed, _):
        done(world.server.kubectl("create", "serviceaccount", "default", "-n", a))
        late = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"edge/gpu-percent": "60"}}}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late", "namespace": a}, "spec": late}
        done(world.server.kubectl("create", "-f", "-", stdin=json.dumps(pod)))
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
