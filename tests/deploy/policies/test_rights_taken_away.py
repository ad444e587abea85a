"""Whoever has all rights of a part but one is refused by a real API server where the part's own code needs that one;
with all of them nothing is. These are the rights in the whole cluster; those in the release's namespace:
test_rights_of_namespace.py."""

import asyncio
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgeshare.contract.names import ACCELERATOR_NODES, ACCELERATOR_NODES_CRD, GPU_ASSIGNMENT, GPU_MEMORY_MIB
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import Kube
from sharemgr.cluster.replica.api import KubeApi
from sharemgr.cluster.state.pods import SharePod
from sharemgr.cluster.status.query import Query
from sharemgr.cluster.status.rights import Rights
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.deploy.objects import Object, Render
from tests.kit.deploy.rights import Accounts, Call, Right, lacks, rules, said

TEAM, NODE, BOUND, WAITING = "taken-away", "taken-node", "bound", "waiting"
UID = "00000000-0000-0000-0000-000000000000"
PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
OF_KIND = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{ACCELERATOR_NODES_CRD}"


def by_kube(call: Callable[[Kube], object]) -> Call:
    return lambda kubeconfig: call(Kube.from_kubeconfig(kubeconfig))


def by_assigner(call: Callable[[KubeApi], Any]) -> Call:
    """What the assigner asks by."""

    async def run(kubeconfig: Path) -> None:
        calls = Calls(kubeconfig)
        async with calls.open():
            await call(KubeApi(calls, nullcontext))

    return lambda kubeconfig: asyncio.run(run(kubeconfig))


def asks_who(kubeconfig: Path) -> None:
    """As the cluster part of who calls: here it is itself, who may list pods."""

    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]

    async def run() -> None:
        calls = Calls(kubeconfig)
        async with calls.open():
            await Rights(calls).check(token, Query())

    asyncio.run(run())


def listed(path: str) -> Call:
    return by_kube(lambda kube: kube.objects(path, "", lambda each: each["metadata"]["name"]))


def watched(path: str) -> Call:
    """The first change of what is there."""
    return by_kube(lambda kube: next(kube.changes(path, "", "0")))


NODE_OBJECT = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
MEMORY = {"status": {"capacity": {GPU_MEMORY_MIB: "1"}, "allocatable": {GPU_MEMORY_MIB: "1"}}}
ABOUT = {"apiVersion": "v1", "kind": "Node", "name": NODE}
STATUS = {"deviceCount": 0, "healthyCount": 0, "allocationCount": 0, "devices": [], "allocations": []}
PUBLISHED = {
    "apiVersion": "share.edge/v1alpha1",
    "kind": "AcceleratorNode",
    "metadata": {"name": NODE},
    "status": STATUS,
}
CALLS: dict[str, dict[Right, Call]] = {
    "edgeshare": {
        ("pods", "get"): by_kube(lambda kube: kube.pod(TEAM, BOUND)),
        ("pods", "list"): by_kube(lambda kube: kube.pods_on(NODE)),
        ("pods", "watch"): watched(PODS),
        ("pods", "patch"): by_kube(lambda kube: kube.annotate_pod(TEAM, BOUND, UID, {GPU_ASSIGNMENT: "{}"})),
        (ACCELERATOR_NODES_CRD, "list"): listed(ACCELERATOR_NODES),
        (ACCELERATOR_NODES_CRD, "watch"): watched(ACCELERATOR_NODES),
        (ACCELERATOR_NODES_CRD, "create"): by_kube(
            lambda kube: kube.apply(f"{ACCELERATOR_NODES}/new", "test", {**PUBLISHED, "metadata": {"name": "new"}})
        ),
        (ACCELERATOR_NODES_CRD, "patch"): by_kube(
            lambda kube: kube.apply(f"{ACCELERATOR_NODES}/{NODE}", "test", PUBLISHED)
        ),
        ("nodes", "get"): by_kube(lambda kube: kube.node(NODE)),
        ("nodes/status", "patch"): by_kube(lambda kube: kube.patch_node_status(NODE, MEMORY)),
        ("events", "create"): by_kube(lambda kube: kube.event("test", ABOUT, False, "Test", "a test")),
    },
    "edgeshare-labeller": {
        ("nodes", "get"): by_kube(lambda kube: kube.node(NODE)),
        ("nodes", "patch"): by_kube(lambda kube: kube.apply(f"{NODES}/{NODE}", "test", NODE_OBJECT, force=False)),
    },
    "edgeshare-removal": {
        ("nodes", "list"): listed(NODES),
        ("nodes", "get"): by_kube(lambda kube: kube.node(NODE)),
        ("nodes/status", "patch"): by_kube(lambda kube: kube.patch_node_status(NODE, MEMORY)),
        (ACCELERATOR_NODES_CRD, "delete"): by_kube(lambda kube: kube.delete(f"{ACCELERATOR_NODES}/none")),
        # Others need the kind.
        (CRDS, "delete"): by_kube(lambda kube: kube.delete(f"{OF_KIND}?dryRun=All")),
    },
    "edgeshare-assigner": {
        ("pods", "get"): by_assigner(lambda api: api.read(TEAM, BOUND)),
        ("pods", "list"): listed(PODS),
        ("pods", "watch"): watched(PODS),
        (ACCELERATOR_NODES_CRD, "list"): listed(ACCELERATOR_NODES),
        (ACCELERATOR_NODES_CRD, "watch"): watched(ACCELERATOR_NODES),
        ("nodes", "list"): listed(NODES),
        ("nodes", "watch"): watched(NODES),
        ("pods/binding", "create"): by_assigner(lambda api: api.bind(SharePod("", TEAM, WAITING, node=NODE))),
        ("nodes/status", "patch"): by_assigner(lambda api: api.annotate_node(NODE, {"test": "a"})),
        ("tokenreviews.authentication.k8s.io", "create"): asks_who,
        ("subjectaccessreviews.authorization.k8s.io", "create"): asks_who,
    },
}
ALL = [(role, right) for role, calls in CALLS.items() for right in calls]


def pod(name: str, **spec: str) -> Object:
    spec_of_it = {"containers": [{"name": "main", "image": "none"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": TEAM}, "spec": spec_of_it}


@pytest.fixture(scope="module")
def roles(render: Render) -> dict[str, Object]:
    values = ("assigner.enabled=true", "assigner.tls.enabled=false", "clusterStatus.enabled=true", "crds.keep=false")
    return {each["metadata"]["name"]: each for each in render(*values) if each["kind"] == "ClusterRole"}


@pytest.fixture(scope="module")
def accounts(installed: ApiServer, roles: dict[str, Object]) -> Accounts:
    """All of these, beside a node and two pods, of which one is bound."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}}
    default = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": TEAM}}
    items = [namespace, default, NODE_OBJECT, pod(BOUND, nodeName=NODE), pod(WAITING)]
    everything = {"apiVersion": "v1", "kind": "List", "items": items}
    done(installed.kubectl("apply", "--filename=-", stdin=json.dumps(everything)))
    return Accounts(installed, TEAM, roles, [*ALL, *((role, None) for role in CALLS)])


@pytest.mark.parametrize(("role", "right"), ALL, ids=lambda each: each if isinstance(each, str) else "-".join(each))
def test_what_needs_a_right_is_refused_without_it_and_never_with_it(
    role: str, right: Right, accounts: Accounts, tmp_path: Path
) -> None:
    call = CALLS[role][right]
    assert lacks(right, said(call, accounts.kubeconfig(role, right, tmp_path)))
    assert not lacks(right, said(call, accounts.kubeconfig(role, None, tmp_path)))


def test_each_right_that_is_asked_through_these_is_taken_away(roles: dict[str, Object]) -> None:
    of_others = {
        # A policy asks for it: tests/deploy/test_assignment_rights.py.
        ("assignments.share.edge", "set"),
        # Where its output is a NodeFeature: tests/deploy/labeller/test_labeller_policy.py, which has the kind.
        *(("nodefeatures.nfd.k8s-sigs.io", verb) for verb in ("get", "delete", "create", "patch")),
    }
    for role, calls in CALLS.items():
        had = {right for right, _ in rules(roles[role])}
        left = had - of_others - calls.keys()
        # What it asks as the labeller does is tried there.
        assert left == ({("nodes", "patch")} if role == "edgeshare-removal" else set())
