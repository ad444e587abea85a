"""Who may write a pod's assignment and a node's AcceleratorNode, at a real API server."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from deviceplugin.cluster.accelerator_node import accelerator_node
from deviceplugin.units.ledger import Allocation, Owner
from edgeshare.contract.devices import Device
from edgeshare.contract.health import HEALTHY, Health, Reason, Source
from edgeshare.contract.names import ACCELERATOR_NODES_CRD
from edgeshare.contract.units import unit_id
from tests.kit.apiserver.api_server import ApiServer, Done, binding, done, refused, until_told

ACCOUNT = "system:serviceaccount:edgeshare:edgeshare"
KEY = "edge/gpu-assignment"
OURS = 'is written by edgeshare alone (right "set" on "assignments" in "share.edge"): leave it out'
THE_PLUGINS = "is written by the device plugin of that node alone"

Impersonate = Callable[..., ApiServer]

MALLORY = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "mallory"},
        "rules": [
            {
                "apiGroups": ["", "share.edge"],
                "resources": [
                    *("pods", "pods/status", "pods/binding", "bindings", "pods/resize", "pods/ephemeralcontainers"),
                    "acceleratornodes",
                ],
                "verbs": ["*"],
            }
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "mallory"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mallory"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "landlord", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "landlord"}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "looks"},
        "rules": [{"apiGroups": ["share.edge"], "resources": ["acceleratornodes"], "verbs": ["get"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "looks"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looks"},
        "subjects": [{"kind": "ServiceAccount", "name": "edgeshare", "namespace": "edgeshare"}],
    },
]
"""Somebody who may do everything with pods and AcceleratorNodes, as far as RBAC goes; the landlord of a namespace, who
may do everything there; and what kubectl needs, which looks before it patches, when it is run as the plugin."""


def pod(name: str, node: str = "", **annotations: str) -> dict[str, Any]:
    """A pod, bound to a node if one is named."""
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "none"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {**spec, "nodeName": node} if node else spec,
    }


def apply(server: ApiServer, thing: dict[str, Any]) -> Done:
    words = ("apply", "--server-side", "--force-conflicts", "--field-manager=edgeshare-deviceplugin", "-f", "-")
    return server.kubectl(*words, stdin=json.dumps(thing))


@pytest.fixture(scope="module")
def impersonate(installed: ApiServer, somebody: Impersonate) -> Impersonate:
    """``somebody``, once the policies are in force."""
    done(
        installed.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": MALLORY}))
    )
    done(installed.kubectl("wait", "--for=condition=Established", f"crd/{ACCELERATOR_NODES_CRD}", "--timeout=60s"))

    mallory = somebody("mallory")
    forged = json.dumps(pod("probe", **{KEY: "x"}))
    until_told(lambda: mallory.kubectl("create", "--dry-run=server", "-f", "-", stdin=forged).stderr, OURS)
    until_told(lambda: apply(mallory, node_object("probe")).stderr, THE_PLUGINS)
    installed.kubectl("delete", "acceleratornode", "probe")
    return somebody


def node_object(name: str, healthy: bool = True) -> dict[str, Any]:
    """An AcceleratorNode as a plugin writes it."""
    fallen = Health(False, Reason.FELL_OFF_BUS, "XID 79", "after a reset", Source.DRIVER_EVENT, 1_000_000_000)
    devices = [
        (Device("GPU-a", 0, "Tesla T4", 16_000), HEALTHY if healthy else fallen),
        (Device("GPU-b", 1, "Tesla T4", 16_000), HEALTHY),
    ]
    units = frozenset(unit_id("GPU-a", unit) for unit in range(30))
    owner = Owner("team", "trainer", "main", "uid-1")
    made = [Allocation("gpu-1", units, "", owner), Allocation("gpu-2", frozenset({unit_id("GPU-b", 0)}), "")]
    return accelerator_node(name, "uid-of-a-node", devices, made)


def test_assignment_is_written_by_nobody_who_may_not_set_it(impersonate: Impersonate, installed: ApiServer) -> None:
    mallory = impersonate("mallory")
    said = OURS
    refused(mallory.create(pod("forged", **{KEY: '{"main":["GPU-a"]}'})), said)
    done(mallory.create(pod("victim", other="x")))
    refused(mallory.kubectl("annotate", "pod", "victim", f"{KEY}=x"), said)
    patch = json.dumps({"metadata": {"annotations": {KEY: "x"}}})
    refused(mallory.kubectl("patch", "pod", "victim", "--subresource=status", "--type=merge", f"--patch={patch}"), said)
    refused(mallory.bind("victim", {KEY: "x"}), said)
    old_door = ("create", "--raw=/api/v1/namespaces/default/bindings", "-f", "-")
    refused(mallory.kubectl(*old_door, stdin=json.dumps(binding("victim", {KEY: "x"}))), said)
    # These two leave annotations as they are, whoever asks.
    for subresource in ("resize", "ephemeralcontainers"):
        mallory.kubectl("patch", "pod", "victim", f"--subresource={subresource}", "--type=merge", f"--patch={patch}")
        assert KEY not in done(installed.kubectl("get", "pod", "victim", "--output=yaml")).stdout
    done(mallory.bind("victim", {"other": "x"}))
    done(mallory.kubectl("annotate", "--overwrite", "pod", "victim", "other=y"))
    # Who may set it, may also be the only one to take it away again.
    done(installed.kubectl("annotate", "pod", "victim", f"{KEY}=x"))
    done(mallory.kubectl("annotate", "--overwrite", "pod", "victim", "other=z"))
    refused(mallory.kubectl("annotate", "pod", "victim", f"{KEY}-"), said)
    done(mallory.kubectl("delete", "pod", "victim", "--force", "--grace-period=0"))


def test_right_to_assign_in_a_namespace_is_none(impersonate: Impersonate) -> None:
    """Devices are the cluster's: whoever assigns them in one namespace takes them from the others."""
    landlord = impersonate("landlord")
    forged = json.dumps(pod("forged", **{KEY: "x"}))
    until_told(lambda: landlord.kubectl("create", "--dry-run=server", "-f", "-", stdin=forged).stderr, OURS)
    done(landlord.create(pod("tenant", other="x")))
    refused(landlord.bind("tenant", {KEY: "x"}), OURS)
    done(landlord.bind("tenant", {"other": "x"}))


def test_plugin_writes_assignments_of_its_own_nodes_pods_and_nothing_else(
    impersonate: Impersonate, installed: ApiServer
) -> None:
    for name, node in (("own", "node-a"), ("foreign", "node-b"), ("unbound", "")):
        done(installed.create(pod(name, node, other="x")))
    plugin = impersonate(ACCOUNT, "node-a")
    done(plugin.kubectl("annotate", "pod", "own", f"{KEY}=x"))
    for name in ("foreign", "unbound"):
        refused(plugin.kubectl("annotate", "pod", name, f"{KEY}=x"), "of its own node's pods alone")
    said = f"of a pod a device plugin writes the annotation {KEY} alone"
    refused(plugin.kubectl("annotate", "--overwrite", "pod", "own", "other=y"), said)
    refused(plugin.kubectl("annotate", "pod", "own", "other-"), said)
    refused(plugin.kubectl("annotate", "pod", "own", "more=y"), said)
    refused(plugin.kubectl("label", "pod", "own", "more=y"), said)
    refused(plugin.kubectl("set", "image", "pod/own", "main=other"), said)
    # A token that was not made for a pod of a node is of no node.
    refused(impersonate(ACCOUNT).kubectl("annotate", "pod", "own", "--overwrite", f"{KEY}=y"), "of its own node's pods")


def test_accelerator_node_is_written_with_a_token_of_that_node_alone(
    impersonate: Impersonate, installed: ApiServer
) -> None:
    plugin = impersonate(ACCOUNT, "node-a")
    done(apply(plugin, node_object("node-a")))
    said = THE_PLUGINS
    refused(apply(plugin, node_object("node-b")), f"AcceleratorNode node-b {said}")
    for somebody in (impersonate(ACCOUNT, "node-b"), impersonate(ACCOUNT), impersonate("mallory", "node-a"), installed):
        refused(apply(somebody, node_object("node-a", healthy=False)), f"AcceleratorNode node-a {said}")
    for somebody in (impersonate(ACCOUNT, "node-b"), impersonate(ACCOUNT)):
        refused(somebody.kubectl("label", "acceleratornode", "node-a", "seen=no"), f"AcceleratorNode node-a {said}")
    # What is no news of the node, the garbage collector has to be able to change.
    done(installed.kubectl("label", "acceleratornode", "node-a", "seen=yes"))
    done(apply(plugin, node_object("node-a", healthy=False)))
    status = json.loads(done(installed.kubectl("get", "accnode", "node-a", "-o", "json")).stdout)["status"]
    assert status == node_object("node-a", healthy=False)["status"]
    table = done(installed.kubectl("get", "acceleratornodes")).stdout.splitlines()
    assert table[0].split() == ["NAME", "DEVICES", "HEALTHY", "ALLOCATIONS", "AGE"]
    assert table[1].split()[:4] == ["node-a", "2", "1", "2"]


def test_accelerator_node_has_a_shape_that_the_api_server_holds_it_to(impersonate: Impersonate) -> None:
    plugin = impersonate(ACCOUNT, "node-c")
    thing = node_object("node-c")
    thing["status"]["devices"][0]["healthy"] = "yes"
    refused(apply(plugin, thing), "status.devices[0].healthy")
    thing = node_object("node-c")
    thing["status"]["allocations"][0]["unitsEach"] = 101
    refused(apply(plugin, thing), "status.allocations[0].unitsEach")
