"""The chart's dashboard, and the page on it: a real Prometheus that has scraped a node's manager and plugin, with
programs that share its devices, and an assigner, has an answer to each of their queries."""

import asyncio
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import pytest

from edgeshare.contract.names import HOOK_LIBRARY, TPU_HOOK_DIR_VARIABLE, TPU_PERCENT
from edgeshare.kubelet.v1beta1.deviceplugin_pb2 import ContainerAllocateResponse
from simgpu.environment import variables
from simgpu.native import BURN
from simgpu.tpu import DRIVER, TPUBURN, Tpus, add_tpus
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.assigner.replicas import KEPT_S, Replica, Replicas
from tests.kit.kubelet.node_under_test import Node, node_at
from tests.kit.kubelet.pod import Pod
from tests.kit.kubelet.scripted_kubelet import ScriptedKubelet
from tests.kit.pages.scraping import LOOK_S, PATIENCE_S, Prometheus, programs_of_prometheus

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "deploy/chart/files/dashboard.json").read_text())
SECTION = (ROOT / "docs/run/monitoring.md").read_text().split("\n## What can be asked\n")[1].split("\n## ")[0]
TARGETS = [
    *(target for panel in DASHBOARD["panels"] for target in panel.get("targets", ())),
    # What the page says can be asked.
    *({"expr": each, "legendFormat": ""} for each in re.findall(r"`([^`]*edgeshare_[^`]*)`", SECTION)),
]
VARIABLES = {"$node": "n1", "$namespace": "team", "$__rate_interval": "1m", "$__range": "1h"}
"""What Grafana puts in: one node and one namespace, so that each series has to say of which it is."""

NODE = {"node": "n1", "namespace": "edgeshare", "pod": "edgeshare-x7k2p"}
"""What discovery adds to the node's targets; what an allocation says of its pod wins over it."""

ON = {"metrics_address": "127.0.0.1:0"}
PODS = 40
GPU = "GPU-of-the-dashboard"


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    """A node with nothing running on it; its path leaves room for sockets' names."""
    root = Path(tempfile.mkdtemp(prefix="es-dash-", dir="/dev/shm"))
    async with node_at(root) as node:
        yield node
    shutil.rmtree(root)


@contextmanager
def running(environment: Mapping[str, str], *command: object) -> Iterator[None]:
    """A program that runs until it is killed."""
    with subprocess.Popen([*map(str, command), "--seconds", "600"], env={**os.environ, **environment}) as process:
        try:
            yield
        finally:
            process.kill()


def mounts(answer: ContainerAllocateResponse) -> dict[str, str]:
    """Where what a container finds is on the node, by its name there."""
    return {Path(mount.container_path).name: mount.host_path for mount in answer.mounts}


async def share_devices(node: Node, tpus: Tpus, programs: ExitStack) -> None:
    """Two programs on a GPU, and two on an EdgeTPU, each in a pod of its own; the other GPU is broken."""
    of_tpus = node.kubelet.beside[TPU_PERCENT] = ScriptedKubelet(node.root / "kubelet", TPU_PERCENT)
    inventory = {"sources": ["nvml", "edgetpu"], "root": str(tpus.folder)}
    await node.start_manager(inventory=inventory, **ON)
    await node.start_plugin(inventory=inventory, **ON)
    await node.kubelet.until(healthy=200)
    await of_tpus.until(healthy=100)
    machine = variables(node.machine_dir, {})
    for name, percent in (("trainer", 60), ("web", 40)):
        found = mounts((await node.kubelet.run(Pod(name, {"main": percent})))["main"])
        hook = {"LD_PRELOAD": found[HOOK_LIBRARY], "EDGESHARE_HOOK_DIR": found["edgeshare"]}
        programs.enter_context(running({**machine, **hook}, BURN))
    for name, percent in (("camera", 70), ("microphone", 30)):
        pod = Pod(name, {"main": 0})
        await node.kubelet.admit(pod)
        await of_tpus.admit(replace(pod, containers={"main": percent}))
        found = mounts(await of_tpus.start_container(pod, "main"))
        hook = {"LD_PRELOAD": f"{found[HOOK_LIBRARY]}:{DRIVER}", TPU_HOOK_DIR_VARIABLE: found["edgeshare-tpu"]}
        programs.enter_context(running({**machine, **hook}, TPUBURN))
    node.machine.inject_xid(1, 79)
    await node.kubelet.until(healthy=100)


@pytest.fixture
def pods(server: ApiServer) -> Iterator[Iterator[dict[str, Any]]]:
    """Pods that wait to be placed, again and again; of those that are by then, the API server refuses a Binding."""
    devices = [{"id": GPU, "kind": "gpu", "model": "Tesla T4", "memoryMiB": 16_000, "healthy": True}]
    told = {"deviceCount": 1, "healthyCount": 1, "allocationCount": 0, "devices": devices, "allocations": []}
    kind = {"apiVersion": "share.edge/v1alpha1", "kind": "AcceleratorNode"}
    things: list[dict[str, Any]] = [{**kind, "metadata": {"name": "dashboard"}, "status": told}]
    limits = {"edge/gpu-percent": 1, "edge/gpu-memory-mib": 100}
    spec = {"containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    labels = {"of": "dashboard"}
    things += [{**pod, "metadata": {"name": f"dashboard-{number}", "labels": labels}} for number in range(PODS)]
    done(server.create({"apiVersion": "v1", "kind": "List", "items": things}))
    made = done(server.kubectl("get", "pods", "--selector=of=dashboard", "--output=json"))
    yield itertools.cycle(json.loads(made.stdout)["items"])
    # Other tests have this API server after this one.
    done(server.kubectl("delete", "acceleratornode/dashboard"))
    done(server.kubectl("delete", "pods", "--selector=of=dashboard", "--force", "--grace-period=0"))


async def place(assigner: Replica, pod: dict[str, Any]) -> None:
    """As kube-scheduler has a pod placed."""
    names, about = ["dashboard"], pod["metadata"]
    assert (await assigner.ask("filter", {"Pod": pod, "NodeNames": names}))[0] == 200
    assert (await assigner.ask("prioritize", {"Pod": pod, "NodeNames": names}))[0] == 200
    bind = {"PodName": about["name"], "PodNamespace": about["namespace"], "PodUID": about["uid"], "Node": names[0]}
    assert (await assigner.ask("bind", bind))[0] == 200


def query(target: Mapping[str, str]) -> str:
    """One of the dashboard's, as Grafana asks it."""
    expression = target["expr"]
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def is_answered(prometheus: Prometheus, target: Mapping[str, str]) -> bool:
    """Whether there is a number; each series has what its legend says. Fails where the query is wrong."""
    try:
        found = prometheus.api(f"query?query={quote(query(target))}")["result"]
    except HTTPError as error:
        with error:
            pytest.fail(f"{query(target)}: {error.read().decode()}")
    for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
        assert all(each["metric"].get(label) for each in found), (query(target), label, found)
    return any(math.isfinite(float(each["value"][1])) for each in found)


def address(log: str) -> str:
    """Where a daemon's pages are, as its log says."""
    return re.findall(r"metrics at http://(\S+)/metrics", log)[-1]


async def test_a_prometheus_that_scraped_the_running_parts_answers_each_query(
    node: Node,
    server: ApiServer,
    pods: Iterator[dict[str, Any]],
    replicas: Replicas,
    lease: dict[str, str],
    tmp_path: Path,
) -> None:
    programs_of = programs_of_prometheus()
    with ExitStack() as programs:
        await share_devices(node, add_tpus(node.machine_dir, "0000:03:00.0"), programs)
        assigner = await replicas.start(lease_s=KEPT_S, kubeconfig=str(server.kubeconfig), lease=lease)
        await assigner.until_ready()
        await node.until_said("metrics at http://")
        logs = [(node.root / "manager.log").read_text(), node.plugin_log.read_text()]
        targets = {address(log): NODE for log in logs} | {
            (await assigner.pages()).removeprefix("http://"): {"pod": "edgeshare-assigner-0"}
        }
        prometheus = Prometheus(programs_of / "prometheus", tmp_path, targets)
        try:
            await asyncio.to_thread(prometheus.ready)
            unanswered = TARGETS
            async with asyncio.timeout(PATIENCE_S):
                while unanswered:
                    # A rate is of what is counted between two scrapes, of which nobody tells.
                    await place(assigner, next(pods))
                    answers = [await asyncio.to_thread(is_answered, prometheus, each) for each in unanswered]
                    unanswered = [each for each, answered in zip(unanswered, answers, strict=True) if not answered]
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            pytest.fail(f"nothing is answered to {[query(each) for each in unanswered]}")
        finally:
            assert prometheus.end() == 0
