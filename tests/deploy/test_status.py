"""The cluster's shares on the command line, by its API server alone, and as kubectl's plugin."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from edgeshare.contract.names import GPU_PERCENT
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.programs.binaries import KUBERNETES, program

NODE = "status-node"
WELL, ILL = "GPU-status-0", "GPU-status-1"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cluster(installed: ApiServer, somebody: Callable[..., ApiServer]) -> Iterator[ApiServer]:
    """A node of two GPUs, of which one is held in part, and a pod that waits."""
    devices = [
        {"id": WELL, "kind": "gpu", "model": "Tesla T4", "memoryMiB": 16_000, "healthy": True},
        {"id": ILL, "kind": "gpu", "model": "Tesla T4", "memoryMiB": 16_000, "healthy": False, "cause": "XID 62"},
    ]
    held = {"id": "a", "devices": [WELL], "unitsEach": 30, "memoryMiB": 4000, "container": "main"}
    held["pod"] = {"namespace": "team", "name": "web-0", "uid": "u"}
    told = {"deviceCount": 2, "healthyCount": 1, "allocationCount": 1, "devices": devices, "allocations": [held]}
    # The node's own plugin writes it, and nobody else may.
    plugin = somebody("system:serviceaccount:edgeshare:edgeshare", NODE)
    kind = {"apiVersion": "share.edge/v1alpha1", "kind": "AcceleratorNode"}
    done(plugin.create({**kind, "metadata": {"name": NODE}, "status": told}))
    asking = {"name": "main", "image": "none", "resources": {"limits": {GPU_PERCENT: 60}}}
    spec = {"containers": [asking], "schedulerName": "edgeshare"}
    done(installed.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "status-waits"}, "spec": spec}))
    yield installed
    # Other tests have this API server after these.
    done(installed.kubectl("delete", "--wait=false", f"acceleratornode/{NODE}", "pod/status-waits"))


@pytest.fixture
def run(cluster: ApiServer) -> Run:
    """Runs a command as somebody would whose kubeconfig leads to this cluster."""
    path = f"{Path(sys.executable).parent}:{program(KUBERNETES, 'kubectl').parent}:{os.environ['PATH']}"

    def run(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig), **variables}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)

    return run


def rows(run: "subprocess.CompletedProcess[str]") -> list[str]:
    """What was printed, with single spaces."""
    assert run.returncode == 0, run.stderr
    return [" ".join(line.split()) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("words", [("kubectl", "edgeshare", "status"), ("edgeshare", "status", "--cluster")])
def test_who_has_what_and_who_waits(run: Run, words: tuple[str, ...]) -> None:
    told = rows(run(*words))
    assert f"{NODE} gpu Tesla T4 30 % 4000 of 16000 MiB healthy team/web-0/main 30 % {WELL}" in told
    assert f"{NODE} gpu Tesla T4 0 % 0 of 16000 MiB XID 62 none {ILL}" in told
    assert f"default/status-waits 60 {GPU_PERCENT} edgeshare its scheduler did not say yet" in told


def test_several_kubeconfigs_are_taken_as_kubectl_takes_them(run: Run, cluster: ApiServer, tmp_path: Path) -> None:
    several = f"{tmp_path / 'none'}:{cluster.kubeconfig}"
    assert rows(run("kubectl", "edgeshare", "status", KUBECONFIG=several)) == rows(
        run("kubectl", "edgeshare", "status")
    )


def test_json_and_yaml_say_the_same(run: Run) -> None:
    as_json, as_yaml = (run("kubectl", "edgeshare", "status", f"--{how}").stdout for how in ("json", "yaml"))
    told = json.loads(as_json)
    assert told == yaml.safe_load(as_yaml)
    (node,) = (each for each in told["nodes"] if each["name"] == NODE)
    whose = {"namespace": "team", "pod": "web-0", "container": "main", "percent": 30, "memory_mib": 4000}
    assert [device["taken"] for device in node["devices"]] == [[whose], []]
    assert [(device["healthy"], device["why"]) for device in node["devices"]] == [(True, ""), (False, "XID 62")]


def test_both_at_once_are_wrong_usage(run: Run) -> None:
    told = run("edgeshare", "status", "--cluster", "--json", "--yaml")
    assert (told.returncode, "--json and --yaml: name one of them" in told.stderr) == (2, True)


def test_top_tells_it_line_by_line_until_it_is_interrupted(cluster: ApiServer) -> None:
    words = [sys.executable, "-m", "edgeshare.cli", "top", "--cluster", f"--kubeconfig={cluster.kubeconfig}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as top:
        assert top.stdout is not None
        # Others' nodes may be there, too.
        told = next(line for line in top.stdout if f"node: {NODE}  " in line)
        top.send_signal(signal.SIGINT)
        top.stdout.read()
    assert top.returncode == 0
    assert "pods: team/web-0/main 30 %" in told


def test_top_tells_programs_what_status_does(run: Run, cluster: ApiServer) -> None:
    status = json.loads(run("edgeshare", "status", "--cluster", "--json").stdout)
    words = [sys.executable, "-m", "edgeshare.cli", "top", "--cluster", "--json", f"--kubeconfig={cluster.kubeconfig}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as top:
        assert top.stdout is not None
        told = json.loads(top.stdout.readline())
        top.send_signal(signal.SIGINT)
        top.stdout.read()
    assert top.returncode == 0
    assert told == {"seen": told["seen"], "stale": "", **status}


def test_an_api_server_that_is_not_there_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "none"
    told = run("kubectl", "edgeshare", "status", KUBECONFIG=str(missing))
    assert told.returncode == 1
    why = "cannot be used as a kubeconfig: there is no such file: mend it, or name another one"
    assert told.stderr.splitlines() == [f"edgeshare: {missing}: {why}"]


def test_who_may_not_list_is_told_what_he_may_not(run: Run, cluster: ApiServer, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    token = done(cluster.kubectl("create", "token", "default", "--namespace=default")).stdout.strip()
    config["users"][0]["user"] = {"token": token}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    told = run("edgeshare", "status", "--cluster", KUBECONFIG=str(tmp_path / "kubeconfig"))
    assert told.returncode == 1
    assert 'User "system:serviceaccount:default:default" cannot list resource "acceleratornodes"' in told.stderr
    assert len(told.stderr.splitlines()) == 1
