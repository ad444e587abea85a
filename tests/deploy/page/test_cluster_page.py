"""The page of a cluster, by a real API server alone."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.kit.apiserver.api_server import READY_S, STOP_S, ApiServer, api_server, done

CRDS = Path(__file__).parents[3] / "deploy/chart/crds"
PATIENCE_S = 60
NODE, GPU = "page-node", "GPU-page-0"


@contextmanager
def top(server: ApiServer) -> Iterator[Iterator[str]]:
    """What the command prints line by line."""
    words = [sys.executable, "-m", "edgeshare.cli", "top", "--cluster", f"--kubeconfig={server.kubeconfig}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as run:
        try:
            assert run.stdout is not None
            yield iter(run.stdout)
        finally:
            run.kill()


@contextmanager
def page(kubeconfig: str) -> Iterator[str]:
    """Its address, while it is served."""
    # What kubectl runs as its plugin.
    words = [str(Path(sys.executable).with_name("kubectl-edgeshare")), "top", "--web", "--listen=127.0.0.1:0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*words, f"--kubeconfig={kubeconfig}"], stdout=subprocess.PIPE, text=True, env=environment
    ) as top:
        try:
            assert top.stdout is not None
            found = re.search(r"http://\S+/", top.stdout.readline())
            assert found
            yield found[0]
            top.send_signal(signal.SIGINT)
            assert top.wait(PATIENCE_S) == 0
        finally:
            top.kill()


def told_by(url: str) -> Iterator[dict[str, Any]]:
    """What is told by and by: a picture, when it was seen and why it holds no more, where it does not."""
    with urlopen(f"{url}events", timeout=PATIENCE_S) as answer:
        for line in answer:
            told = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: ") else {}
            if "picture" in told:
                yield told


def accelerator_node() -> dict[str, Any]:
    """What a node tells of its devices: one GPU, of which a part is held."""
    held = {"id": "a", "devices": [GPU], "unitsEach": 30, "memoryMiB": 4000, "container": "main"}
    held["pod"] = {"namespace": "team", "name": "web-0", "uid": "u"}
    device = {"id": GPU, "kind": "gpu", "model": "Tesla T4", "memoryMiB": 16_000, "healthy": True}
    told = {"deviceCount": 1, "healthyCount": 1, "allocationCount": 1, "devices": [device], "allocations": [held]}
    return {"apiVersion": "share.edge/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": NODE}, "status": told}


@pytest.fixture
def node(installed: ApiServer, somebody: Callable[..., ApiServer]) -> Iterator[ApiServer]:
    """Somebody who may write what a node tells of its devices, and has."""
    plugin = somebody("system:serviceaccount:edgeshare:edgeshare", NODE)
    done(plugin.create(accelerator_node()))
    yield plugin
    done(installed.kubectl("delete", "--wait=false", "--ignore-not-found", f"acceleratornode/{NODE}"))


def devices(picture: dict[str, Any]) -> list[Any]:
    """Those of the node; others' nodes may be there, too."""
    return [device for node in picture["nodes"] if node["name"] == NODE for device in node["devices"]]


def test_who_has_what_is_told_and_told_anew(installed: ApiServer, node: ApiServer) -> None:
    with page(str(installed.kubeconfig)) as url:
        told = told_by(url)
        (device,) = devices(next(told)["picture"])
        (share,) = device["shares"]
        assert (device["id"], device["model"]) == (GPU, "gpu Tesla T4")
        assert (share["owner"], share["asked_percent"], share["memory_mib"]) == ("team/web-0/main", 30, 4000)
        done(installed.kubectl("delete", f"acceleratornode/{NODE}"))
        assert next(each for each in told if devices(each["picture"]) == [])
        told.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ApiServer]:
    """An API server that no other test has, as it is ended, with one node's devices."""
    with api_server(tmp_path / "api-server") as server:
        server.define(CRDS)
        done(server.create(accelerator_node()))
        yield server


def test_while_the_api_server_is_away_what_was_seen_stays_and_is_of_now_again_by_itself(own_server: ApiServer) -> None:
    with page(str(own_server.kubeconfig)) as url, closing(told_by(url)) as told, top(own_server) as lines:
        seen = next(told)
        assert (len(devices(seen["picture"])), seen["stale"]) == (1, "")
        assert f"node: {NODE}  " in next(lines)
        own_server.daemons.stop("api-server", STOP_S)
        stale = next(each for each in told if each["stale"])
        assert devices(stale["picture"]) == devices(seen["picture"])
        assert stale["seenMs"] >= seen["seenMs"]
        away = next(line for line in lines if line.startswith("as it was at "))
        assert "the API server cannot be asked" in away
        own_server.daemons.start("api-server", own_server.plane.api_server())
        own_server.daemons.wait_until("api-server", own_server.plane.api_server_ready, READY_S)
        back = next(each for each in told if not each["stale"])
        assert back["seenMs"] > stale["seenMs"]
        assert len(devices(back["picture"])) == 1
        # Of now: a line of the node's, and then none that says of when it was.
        assert next(
            after for line, after in pairwise(lines) if f"node: {NODE}  " in line and f"node: {NODE}  " in after
        )


def refused(kubeconfig: Path) -> str:
    """The one line that is said in place of an address."""
    words = [sys.executable, "-m", "edgeshare.cli", "top", "--cluster", "--web", "--listen=127.0.0.1:0"]
    words.append(f"--kubeconfig={kubeconfig}")
    told = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (told.returncode, told.stdout) == (1, "")
    (line,) = told.stderr.splitlines()
    return line


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "cannot be used as a kubeconfig" in refused(tmp_path / "none")


def test_who_may_not_list_the_nodes_devices_is_served_no_page(installed: ApiServer, tmp_path: Path) -> None:
    config = json.loads(installed.kubeconfig.read_text())
    kubeconfig = tmp_path / "kubeconfig"
    token = done(installed.kubectl("create", "token", "default", "--namespace=default")).stdout.strip()
    for each, said in ((token, 'cannot list resource "acceleratornodes"'), ("nonsense", "401")):
        config["users"][0]["user"] = {"token": each}
        kubeconfig.write_text(json.dumps(config))
        assert said in refused(kubeconfig)
