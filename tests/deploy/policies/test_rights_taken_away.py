"""Whoever has all rights of a part but one is refused by a real API server where the part's own code needs that one;
with all of them nothing is. Of leases, slices and secrets test_roles.py alone says who needs which."""

import asyncio
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import ACCELERATOR_NODES, ACCELERATOR_NODES_CRD, GPU_ASSIGNMENT, GPU_MEMORY_MIB
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import Kube
from sharemgr.cluster.replica.api import KubeApi
from sharemgr.cluster.state.pods import SharePod
from tests.kit.apiserver.api_server import ApiServer, done, until_told
from tests.kit.deploy.objects import Object, Render

Right = tuple[str, str]
Call = Callable[[Path], object]

TEAM, NODE, BOUND, WAITING = "taken-away", "taken-node", "bound", "waiting"
UID = "00000000-0000-0000-0000-000000000000"
RBAC = "rbac.authorization.k8s.io"
PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


def by_kube(call: Callable[[Kube], object]) -> Call:
    return lambda kubeconfig: call(Kube.from_kubeconfig(kubeconfig))


def by_assigner(call: Callable[[KubeApi], Any]) -> Call:
    """What the assigner asks by."""

    async def run(kubeconfig: Path) -> None:
        calls = Calls(kubeconfig)
        async with calls.open():
            await call(KubeApi(calls, nullcontext))

    return lambda kubeconfig: asyncio.run(run(kubeconfig))


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
    },
}
ALL = [(role, right) for role, calls in CALLS.items() for right in calls]


def account(role: str, lacking: Right | None) -> str:
    """The name of the service account that has all rights of a role but one, or all."""
    return f"{role}-but-{'-'.join(lacking).replace('/', '-')}" if lacking else f"{role}-whole"


def rights(role: Object) -> list[tuple[str, str, str]]:
    """Each group, resource and verb of a role."""
    return [
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def without(role: Object, lacking: Right | None) -> list[Object]:
    """A service account that has what a role gives but one right, with all that makes it so."""
    name = account(role["metadata"]["name"], lacking)
    left = [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for group, resource, verb in rights(role)
        if (f"{resource}.{group}" if group else resource, verb) != lacking
    ]
    assert lacking is None or len(left) < len(rights(role))
    subject = {"kind": "ServiceAccount", "name": name, "namespace": TEAM}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": TEAM}},
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": left},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        },
    ]


def pod(name: str, **spec: str) -> Object:
    spec_of_it = {"containers": [{"name": "main", "image": "none"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": TEAM}, "spec": spec_of_it}


@pytest.fixture(scope="module")
def roles(render: Render) -> dict[str, Object]:
    objects = render("assigner.enabled=true", "assigner.tls.enabled=false")
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == "ClusterRole"}


@pytest.fixture(scope="module")
def world(installed: ApiServer, roles: dict[str, Object]) -> ApiServer:
    """The API server with all of these accounts, a node, and two pods, of which one is bound."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}}
    default = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": TEAM}}
    lacking: list[tuple[str, Right | None]] = [*ALL, *((role, None) for role in CALLS)]
    accounts = [each for role, right in lacking for each in without(roles[role], right)]
    items = [namespace, default, *accounts, NODE_OBJECT, pod(BOUND, nodeName=NODE), pod(WAITING)]
    everything = {"apiVersion": "v1", "kind": "List", "items": items}
    done(installed.kubectl("apply", "--filename=-", stdin=json.dumps(everything)))
    return installed


@pytest.fixture
def somebody(world: ApiServer, roles: dict[str, Object], tmp_path: Path) -> Callable[[str, Right | None], Path]:
    """A kubeconfig of one of the accounts, once the rest of its rights are in force."""

    def kubeconfig(role: str, lacking: Right | None) -> Path:
        name = account(role, lacking)
        (group, resource, verb) = next(
            each
            for each in rights(roles[role])
            if "/" not in each[1] and (f"{each[1]}.{each[0]}" if each[0] else each[1], each[2]) != lacking
        )
        asked = ("auth", "can-i", verb, f"{resource}.{group}" if group else resource, "--all-namespaces")
        who = f"--as=system:serviceaccount:{TEAM}:{name}"
        until_told(lambda: world.kubectl(*asked, who).stdout, "yes")
        token = done(world.kubectl("create", "token", name, f"--namespace={TEAM}")).stdout.strip()
        settings = yaml.safe_load(world.kubeconfig.read_text())
        settings["users"][0]["user"] = {"token": token}
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(settings))
        return path

    return kubeconfig


def said(call: Call, kubeconfig: Path) -> str:
    """What comes of it, if it is an error. A policy's refusal is one, too, in words of its own."""
    try:
        call(kubeconfig)
    except Unavailable as error:
        return str(error)
    return ""


def lacks(right: Right, told: str) -> bool:
    """Whether that says that somebody has not that right; of a watch the part keeps no more than the status."""
    resource, verb = right
    name, _, group = resource.partition(".")
    if verb == "watch":
        return f"refuses a watch of /api{'s' if group else ''}/" in told and told.endswith(f"/{name}: 403")
    return f'cannot {verb} resource "{name}"' in told


@pytest.mark.parametrize(("role", "right"), ALL, ids=lambda each: each if isinstance(each, str) else "-".join(each))
def test_what_needs_a_right_is_refused_without_it_and_never_with_it(
    role: str, right: Right, somebody: Callable[[str, Right | None], Path]
) -> None:
    call = CALLS[role][right]
    assert lacks(right, said(call, somebody(role, right)))
    assert not lacks(right, said(call, somebody(role, None)))


def test_each_right_that_is_asked_through_these_is_taken_away(roles: dict[str, Object]) -> None:
    of_others = {
        # A policy asks for it: tests/deploy/test_assignment_rights.py.
        ("assignments.share.edge", "set"),
        # Where its output is a NodeFeature: tests/deploy/labeller/test_labeller_policy.py, which has the kind.
        *(("nodefeatures.nfd.k8s-sigs.io", verb) for verb in ("get", "delete", "create", "patch")),
    }
    for role, calls in CALLS.items():
        had = {(f"{resource}.{group}" if group else resource, verb) for group, resource, verb in rights(roles[role])}
        left = had - of_others - calls.keys()
        # What it asks as the labeller does is tried there.
        assert left == ({("nodes", "patch")} if role == "edgeshare-removal" else set())
