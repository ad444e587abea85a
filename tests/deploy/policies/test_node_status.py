"""What a plugin may write of a Node, at a real API server: the memory of its own node's GPUs, and nothing that the
policy does not know."""

import json
from collections.abc import Callable

import pytest

from tests.kit.apiserver.api_server import ApiServer, Done, done, refused, until_told
from tests.kit.deploy.objects import Object

ACCOUNT = "system:serviceaccount:edgeshare:edgeshare"
MEMORY = "edge/gpu-memory-mib"
ALONE = f"of a Node a device plugin writes {MEMORY} alone"
OWN = "a device plugin writes the status of its own node alone"


NODE: Object = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "finalizers": ["example.org/kept"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}],
    },
}
STATUS: Object = {
    "capacity": {"cpu": "4", "edge/gpu-percent": "200"},
    "allocatable": {"cpu": "4", "edge/gpu-percent": "200"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}],
    "volumesInUse": ["kubernetes.io/x"],
    "nodeInfo": {"machineID": "z"},
}
BARE = "policy-bare"
"""A Node whose kubelet has told nothing yet."""
MINE, OTHER = "policy-mine", "policy-other"


def patch(server: ApiServer, node: str, change: Object) -> Done:
    """A change of a Node by its status, as the plugin makes it."""
    words = ("patch", "node", node, "--subresource=status", "--type=merge", "--dry-run=server")
    return server.kubectl(*words, "--output=json", "--patch", json.dumps(change))


@pytest.fixture(scope="module")
def plugin(installed: ApiServer, somebody: Callable[..., ApiServer]) -> ApiServer:
    """MINE's plugin, whose account the policy holds to the memory; by RBAC it may read and write the status of any."""
    made = [
        {**NODE, "metadata": {**NODE["metadata"], "name": MINE}},
        {**NODE, "metadata": {**NODE["metadata"], "name": OTHER}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": BARE}},
    ]
    done(installed.create({"apiVersion": "v1", "kind": "List", "items": made}))
    for name in (MINE, OTHER):
        words = ("patch", "node", name, "--subresource=status", "--type=merge")
        done(installed.kubectl(*words, "--patch", json.dumps({"status": STATUS})))
    # kubectl looks before it patches.
    done(installed.kubectl("create", "clusterrole", "policy-looks", "--verb=get", "--resource=nodes/status"))
    bound = ("clusterrolebinding", "policy-looks", "--clusterrole=policy-looks", f"--user={ACCOUNT}")
    done(installed.kubectl("create", *bound))
    plugin = somebody(ACCOUNT, MINE)
    until_told(lambda: patch(plugin, MINE, {"status": {"conditions": []}}).stderr, ALONE)
    return plugin


@pytest.mark.parametrize(
    "status",
    [
        {"capacity": {MEMORY: "15360"}, "allocatable": {MEMORY: "15360"}},
        {"capacity": {MEMORY: "8"}},
        {"capacity": {MEMORY: "0"}, "allocatable": {MEMORY: "0"}},
        # What is written as it was, is no change.
        {"capacity": {MEMORY: "8"}, "conditions": STATUS["conditions"], "addresses": STATUS["addresses"]},
        {},
    ],
)
def test_plugin_writes_its_own_nodes_memory(plugin: ApiServer, status: Object) -> None:
    written = json.loads(done(patch(plugin, MINE, {"status": status})).stdout)["status"]
    for field in ("capacity", "allocatable"):
        assert written[field] == {**STATUS[field], **status.get(field, {})}


def test_plugin_writes_it_for_a_node_that_says_nothing_of_itself_and_takes_it_back(
    installed: ApiServer, somebody: Callable[..., ApiServer]
) -> None:
    bare = somebody(ACCOUNT, BARE)
    told = {"status": {"capacity": {MEMORY: "8"}, "allocatable": {MEMORY: "8"}}}
    assert json.loads(done(patch(bare, BARE, told)).stdout)["status"]["capacity"] == {MEMORY: "8"}
    words = ("patch", "node", BARE, "--subresource=status", "--type=merge")
    done(installed.kubectl(*words, "--patch", json.dumps(told)))
    gone = {"status": {"capacity": {MEMORY: None}, "allocatable": {MEMORY: None}}}
    assert MEMORY not in json.loads(done(patch(bare, BARE, gone)).stdout)["status"].get("capacity", {})
    refused(patch(bare, BARE, {"status": {"capacity": {MEMORY: "8", "cpu": "1"}}}), ALONE)


STATUS_CHANGES: dict[str, Object] = {
    "more of a resource": {"capacity": {"cpu": "400"}},
    "a resource less": {"allocatable": {"cpu": None}},
    "no resources at all": {"capacity": None},
    "another resource of ours": {"allocatable": {"edge/gpu-percent": "900"}},
    "another resource beside the memory": {"capacity": {MEMORY: "8", "example.org/gpu": "1"}},
    "a resource of that name with a suffix": {"capacity": {f"{MEMORY}2": "1"}},
    "another condition": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletReady"}]},
    "no conditions": {"conditions": None},
    "another address": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
    "what the kubelet says of itself": {"nodeInfo": {"machineID": "x"}},
    "its port": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}},
    "a phase": {"phase": "Terminated"},
    "images": {"images": [{"names": ["x"], "sizeBytes": 1}]},
    "volumes that are attached": {"volumesAttached": [{"name": "x", "devicePath": "y"}]},
    "no volumes in use": {"volumesInUse": None},
    "handlers of the runtime": {"runtimeHandlers": [{"name": "x"}]},
    "features of the runtime": {"features": {"supplementalGroupsPolicy": True}},
    # A list of the fields that there were when the policy was written would not have it: it came with Kubernetes 1.35.
    "features that the kubelet declares": {"declaredFeatures": ["MyFeature"]},
}


@pytest.mark.parametrize("status", STATUS_CHANGES.values(), ids=STATUS_CHANGES)
def test_plugin_writes_nothing_else_of_its_nodes_status(plugin: ApiServer, status: Object) -> None:
    refused(patch(plugin, MINE, {"status": status}), ALONE)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"a": None}},
        {"labels": {"more": "x"}},
        {"annotations": {"edge/gpu-released": "x"}},
        {"annotations": {"a": "c"}},
        {"annotations": None},
        {"finalizers": None},
        {"ownerReferences": None},
    ],
    ids=json.dumps,
)
def test_plugin_writes_no_metadata_of_a_node(plugin: ApiServer, metadata: Object) -> None:
    refused(patch(plugin, MINE, {"metadata": metadata}), ALONE)
    refused(patch(plugin, MINE, {"metadata": metadata, "status": {"capacity": {MEMORY: "8"}}}), ALONE)


def test_plugin_writes_nothing_of_another_node_and_without_a_nodes_token_of_none(
    plugin: ApiServer, somebody: Callable[..., ApiServer]
) -> None:
    memory = {"status": {"capacity": {MEMORY: "8"}}}
    refused(patch(plugin, OTHER, memory), OWN)
    refused(patch(somebody(ACCOUNT), MINE, memory), OWN)


def test_a_node_is_written_by_others_as_before(plugin: ApiServer, installed: ApiServer) -> None:
    assert plugin.kubeconfig != installed.kubeconfig
    done(patch(installed, MINE, {"status": {"capacity": {"cpu": "8"}, "conditions": []}}))
