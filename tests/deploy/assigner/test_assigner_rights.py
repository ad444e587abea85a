"""What the chart's assigner may do at a real API server, and what not."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import ACCELERATOR_NODES_CRD, GPU_ASSIGNMENT, GPU_RELEASED
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import Kube
from sharemgr.cluster.replica.api import KubeApi
from tests.kit.apiserver.api_server import ApiServer, done, refused, until_told
from tests.kit.deploy.assigner import NAME, WITH_SECRET
from tests.kit.deploy.objects import Object, Render
from tests.kit.deploy.rights import until_may

ACCOUNT = f"system:serviceaccount:edgeshare:{NAME}"
PLUGIN = "system:serviceaccount:edgeshare:edgeshare"
ALONE = f"of a Node the assigner writes the annotation {GPU_RELEASED} alone"

Somebody = Callable[..., ApiServer]
T = TypeVar("T")


def pod(name: str, node: str = "") -> Object:
    """One that asks for a share, bound to a node if one is named."""
    limits = {"edge/gpu-percent": 50}
    spec: Object = {"containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**spec, "nodeName": node} if node else spec,
    }


@pytest.fixture(scope="module")
def with_assigner(installed: ApiServer, render: Render) -> ApiServer:
    """The API server with the assigner's objects, too, and a node."""
    objects = [each for each in render(*WITH_SECRET) if NAME in each["metadata"]["name"]]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    done(installed.kubectl("apply", "--validate=strict", "-f", "-", stdin=everything))
    done(installed.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}}))
    return installed


def asked(kubeconfig: Path, ask: Callable[[KubeApi], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        calls = Calls(kubeconfig)
        async with calls.open():
            return await ask(KubeApi(calls, nullcontext))

    return asyncio.run(run())


@pytest.fixture(scope="module")
def assigner(with_assigner: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig file of the assigner, with a token of its account, once its policy is in force."""
    token = done(with_assigner.kubectl("create", "token", NAME, "--namespace=edgeshare")).stdout.strip()
    settings = yaml.safe_load(with_assigner.kubeconfig.read_text())
    settings["users"][0]["user"] = {"token": token}
    path = tmp_path_factory.mktemp("assigner") / "kubeconfig"
    path.write_text(yaml.safe_dump(settings))

    def told() -> str:
        try:
            asked(path, lambda api: api.annotate_node("node-a", {"probe": f"{time.monotonic()}"}))
        except Unavailable as error:
            return str(error)
        return ""

    until_told(told, ALONE)
    return path


@pytest.mark.usefixtures("assigner")  # by then its rights are known
@pytest.mark.parametrize(
    ("right", "answer"),
    [
        ("watch pods --all-namespaces", "yes"),
        (f"list {ACCELERATOR_NODES_CRD} --all-namespaces", "yes"),
        ("watch nodes", "yes"),
        ("create pods --subresource=binding --all-namespaces", "yes"),
        ("patch nodes --subresource=status", "yes"),
        (f"update leases.coordination.k8s.io/{NAME} --namespace=edgeshare", "yes"),
        ("create leases.coordination.k8s.io --namespace=edgeshare", "yes"),
        ("update leases.coordination.k8s.io/another --namespace=edgeshare", "no"),
        (f"update leases.coordination.k8s.io/{NAME} --namespace=kube-system", "no"),
        ("create endpointslices.discovery.k8s.io --namespace=edgeshare", "yes"),
        (f"patch endpointslices.discovery.k8s.io/{NAME} --namespace=edgeshare", "yes"),
        ("patch endpointslices.discovery.k8s.io/another --namespace=edgeshare", "no"),
        ("create endpointslices.discovery.k8s.io --namespace=kube-system", "no"),
        ("patch pods --all-namespaces", "no"),
        ("delete pods --all-namespaces", "no"),
        ("patch nodes", "no"),
        ("create events --all-namespaces", "no"),
        (f"patch {ACCELERATOR_NODES_CRD} --all-namespaces", "no"),
        ("get secrets --namespace=edgeshare", "no"),
    ],
)
def test_it_has_the_rights_that_it_uses_and_no_others(right: str, answer: str, with_assigner: ApiServer) -> None:
    until_may(with_assigner, ACCOUNT, right, answer)


def test_it_assigns_in_the_binding_and_the_plugin_does_not_write_over_that(
    with_assigner: ApiServer, assigner: Path, somebody: Somebody
) -> None:
    for name in ("assigned", "packed"):
        done(with_assigner.create(pod(name)))
    plugin = somebody(PLUGIN, "node-a")
    # kube-scheduler itself may bind, and not assign.
    said = 'is written by edgeshare alone (right "set" on "assignments" in "share.edge"): leave it out'
    refused(somebody("system:kube-scheduler").bind("assigned", {GPU_ASSIGNMENT: "x"}), said)
    read = asked(assigner, lambda api: api.read("default", "assigned"))
    assert read is not None
    placed = read._replace(node="node-a", assignment='{"main":["GPU-a"]}')
    asked(assigner, lambda api: api.bind(placed))
    bound = asked(assigner, lambda api: api.read("default", "assigned"))
    assert bound is not None
    assert (bound.node, bound.assignment) == (placed.node, placed.assignment)
    once = f"annotation {GPU_ASSIGNMENT} where nobody else assigned the pod its devices, and once"
    refused(plugin.kubectl("annotate", "--overwrite", "pod", "assigned", f"{GPU_ASSIGNMENT}=y"), once)
    refused(plugin.kubectl("annotate", "pod", "assigned", f"{GPU_ASSIGNMENT}-"), once)
    done(with_assigner.bind("packed", {}))
    done(plugin.kubectl("annotate", "pod", "packed", f"{GPU_ASSIGNMENT}=y"))
    refused(plugin.kubectl("annotate", "--overwrite", "pod", "packed", f"{GPU_ASSIGNMENT}=z"), once)


def test_of_a_node_it_writes_one_annotation_and_nothing_else(with_assigner: ApiServer, assigner: Path) -> None:
    done(with_assigner.kubectl("annotate", "node", "node-a", "other=x"))
    for when in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"):
        asked(assigner, lambda api, when=when: api.annotate_node("node-a", {GPU_RELEASED: when}))
    told = with_assigner.kubectl("get", "node", "node-a", "-o", r"jsonpath={.metadata.annotations.edge/gpu-released}")
    assert told.stdout == "2026-01-01T00:00:01Z"
    for annotations in ({"other": "y"}, {"other": None}, {"more": "y"}):
        with pytest.raises(Unavailable, match=ALONE):
            asked(assigner, lambda api, annotations=annotations: api.annotate_node("node-a", annotations))
    node = {"apiVersion": "v1", "kind": "Node"}
    for change in (
        {"metadata": {"name": "node-a"}, "status": {"capacity": {"edge/gpu-percent": "800"}}},
        {"metadata": {"name": "node-a", "labels": {"more": "y"}}},
    ):
        with pytest.raises(Unavailable, match=ALONE):
            Kube.from_kubeconfig(assigner).apply("/api/v1/nodes/node-a/status", "test", node | change)
