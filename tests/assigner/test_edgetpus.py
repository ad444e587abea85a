"""EdgeTPUs placed by a real replica at a real API server: what it writes into a Binding, and what the next reads."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.assigner.replicas import PROBE_S, SAFETY_S, Replica, Replicas
from tests.kit.onenode.scheduling import Extender
from tests.kit.programs.binaries import KUBERNETES, program

TPU, GPU = "edge/tpu-percent", "edge/gpu-percent"
LABELS = {"of": "edgetpus"}
NODE = {"apiVersion": "v1", "kind": "Node"}


def device(name: str, kind: str) -> dict[str, Any]:
    return {"id": name, "kind": kind, "model": kind, "memoryMiB": 1000 * (kind == "gpu"), "healthy": True}


def node(name: str, *devices: dict[str, Any]) -> dict[str, Any]:
    """Its AcceleratorNode."""
    counts = {"deviceCount": len(devices), "healthyCount": len(devices), "allocationCount": 0}
    kind = {"apiVersion": "share.edge/v1alpha1", "kind": "AcceleratorNode"}
    return {**kind, "metadata": {"name": name}, "status": {**counts, "devices": devices, "allocations": []}}


def pod(name: str, **limits: str) -> dict[str, Any]:
    named = {TPU: limits.get("tpu"), GPU: limits.get("gpu")}
    resources = {"limits": {key: size for key, size in named.items() if size}}
    container = {"name": "main", "image": "none", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": LABELS},
        "spec": {"containers": [container]},
    }


class Cluster:
    """What a kube-scheduler does with one replica."""

    def __init__(self, server: ApiServer, replica: Replica) -> None:
        self._server = server
        self.replica = replica

    @classmethod
    async def of(cls, server: ApiServer, replicas: Replicas, *nodes: dict[str, Any]) -> "Cluster":
        """With these nodes, which a replica has read when it begins."""
        made = json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes})
        done(await asyncio.to_thread(server.kubectl, "create", "-f=-", stdin=made))
        replica = await replicas.start(kubeconfig=str(server.kubeconfig))
        await replica.until_ready()
        return cls(server, replica)

    async def make(self, thing: dict[str, Any]) -> dict[str, Any]:
        """The object, as the API server has it."""
        made = await asyncio.to_thread(
            self._server.kubectl, "create", "--namespace=default", "-f=-", "-o=json", stdin=json.dumps(thing)
        )
        found: dict[str, Any] = json.loads(done(made).stdout)
        return found

    async def filter(self, asking: dict[str, Any], *names: str) -> Any:
        """What filter answers."""
        status, answer = await self.replica.ask("filter", {"Pod": asking, "NodeNames": names})
        assert status == 200
        return answer

    async def bind(self, asking: dict[str, Any], on: str) -> Any:
        """The assignment that the pod has then, or the error."""
        named = asking["metadata"]
        binding = {"PodName": named["name"], "PodNamespace": "default", "PodUID": named["uid"], "Node": on}
        status, answer = await self.replica.ask("bind", binding)
        assert status == 200
        if answer["Error"]:
            return answer["Error"]
        got = await asyncio.to_thread(self._server.kubectl, "get", "pod", named["name"], "-n=default", "-o=json")
        return json.loads(json.loads(done(got).stdout)["metadata"]["annotations"]["edge/gpu-assignment"])


@pytest.fixture
def emptied(server: ApiServer) -> Iterator[ApiServer]:
    """The API server, which other tests find as they left it."""
    yield server
    done(server.kubectl("delete", "acceleratornodes", "corals", "gpus"))
    done(
        server.kubectl("delete", "pods", "--namespace=default", "--selector=of=edgetpus", "--force", "--grace-period=0")
    )


async def figures(replica: Replica) -> dict[str, float]:
    """What it tells Prometheus that has no labels."""
    _, told = await replica.page("metrics")
    lines = (line.removeprefix("edgeshare_assigner_").split() for line in told.splitlines() if line[0] != "#")
    return {name: float(value) for name, value in lines if "{" not in name}


async def test_each_edgetpu_is_given_out_up_to_its_own_hundred_also_by_the_next_replica(
    replicas: Replicas, emptied: ApiServer
) -> None:
    server = emptied
    corals = node("corals", device("2-1.1", "edgetpu"), device("2-1.2", "edgetpu"), device("GPU-c", "gpu"))
    first = await Cluster.of(server, replicas, corals, node("gpus", device("GPU-g", "gpu")))
    names = ("gpus", "corals")
    pods = [await first.make(pod(f"camera-{number}", tpu="60")) for number in range(3)]
    pods.append(await first.make(pod("both", tpu="40", gpu="70")))
    given = []
    for each in pods[:2]:
        answer = await first.filter(each, *names)
        assert answer["NodeNames"] == ["corals"]
        assert "has told of no EdgeTPU" in answer["FailedNodes"]["gpus"]
        given.append(await first.bind(each, "corals"))
    assert sorted(each["main"][TPU][0] for each in given) == ["2-1.1", "2-1.2"]
    refused = await first.bind(pods[2], "gpus")
    assert refused.startswith("node gpus: its device plugin has told of no EdgeTPU (there is no AcceleratorNode")
    await first.replica.end(signal.SIGTERM)

    second = Cluster(server, await replicas.start(kubeconfig=str(server.kubeconfig)))
    await second.replica.until_ready()
    before = await figures(second.replica)
    # 80 of the node's 200 units are left.
    answer = await second.filter(pods[2], *names)
    why = "60 units of one EdgeTPU: tpu 0: 40 of 100 units free, tpu 1: 40 of 100 units free"
    assert (answer["NodeNames"], answer["FailedNodes"]["corals"]) == ([], why)
    assert await second.bind(pods[2], "corals") == f"node corals: {why}"
    assert (await second.filter(pods[3], *names))["NodeNames"] == ["corals"]
    both = await second.bind(pods[3], "corals")
    assert (both["main"][GPU], both["main"][TPU][0]) == (["GPU-c"], given[0]["main"][TPU][0])
    after = await figures(second.replica)
    # Others have GPUs in this cluster, and nobody has EdgeTPUs.
    changed = {name: value - before[name] for name, value in after.items() if name in ("gpus", "units", "units_held")}
    assert changed == {"gpus": 0, "units": 0, "units_held": 70}
    expected = {"tpus": 2, "tpu_units": 200, "tpu_units_held": 160, "tpus_overcommitted": 0, "tpus_unhealthy": 0}
    assert {name: after[name] for name in expected} == expected
    assert after["pods_flagged"] == before["pods_flagged"]


@contextmanager
def scheduling(server: ApiServer, folder: Path, url: str) -> Iterator[None]:
    """A kube-scheduler that asks whoever answers there runs meanwhile."""
    config = folder / "scheduler.json"
    described = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(server.kubeconfig)},
        "extenders": [Extender(url.removeprefix("http://"), None).described()],
    }
    config.write_text(json.dumps(described))
    words = [program(KUBERNETES, "kube-scheduler"), f"--config={config}", "--secure-port=0"]
    with (folder / "scheduler.log").open("w") as log, subprocess.Popen(words, stderr=log) as process:
        try:
            yield
        finally:
            process.kill()


@pytest.fixture
def corals(emptied: ApiServer) -> Iterator[ApiServer]:
    """An API server with a node that takes pods, and has 200 units of EdgeTPUs as its kubelet counts."""
    done(emptied.kubectl("create", "-f=-", stdin=json.dumps({**NODE, "metadata": {"name": "corals"}})))
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "100", TPU: "200"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": capacity, "allocatable": capacity}
    patch = json.dumps({"status": ready})
    done(emptied.kubectl("patch", "node", "corals", "--subresource=status", "--type=merge", f"--patch={patch}"))
    # What a node controller would take away.
    done(emptied.kubectl("taint", "node", "corals", "node.kubernetes.io/not-ready-"))
    yield emptied
    done(emptied.kubectl("delete", "node", "corals"))


async def test_kube_scheduler_asks_of_edgetpus_and_is_told_what_the_sum_hides(
    replicas: Replicas, corals: ApiServer, tmp_path: Path
) -> None:
    told = node("corals", device("2-1.1", "edgetpu"), device("2-1.2", "edgetpu"))
    cluster = await Cluster.of(corals, replicas, told, node("gpus"))
    for name in ("one", "two", "three"):
        await cluster.make(pod(name, tpu="60"))
    with scheduling(corals, tmp_path, await cluster.replica.url()):
        async with asyncio.timeout(SAFETY_S):
            while True:
                listed = await asyncio.to_thread(corals.kubectl, "get", "pods", "--selector=of=edgetpus", "-o=json")
                pods = json.loads(done(listed).stdout)["items"]
                said = [
                    each.get("message", "") for each_pod in pods for each in each_pod["status"].get("conditions", ())
                ]
                noted = [each["metadata"].get("annotations", {}).get("edge/gpu-assignment") for each in pods]
                refusals = [message for message in said if "60 units of one EdgeTPU" in message]
                if noted.count(None) == 1 and refusals:
                    break
                # The API server is asked, not followed.
                await asyncio.sleep(PROBE_S)
    assert sorted(json.loads(each)["main"][TPU][0] for each in noted if each) == ["2-1.1", "2-1.2"]
    assert "tpu 0: 40 of 100 units free, tpu 1: 40 of 100 units free" in refusals[0]
