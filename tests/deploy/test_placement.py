"""Where the assigner is enabled, a pod that asks for a GPU is placed by it, whoever makes the pod."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from edgeshare.contract.names import GPU_PERCENT, TPU_PERCENT
from tests.kit.apiserver.api_server import ApiServer, done, until_told
from tests.kit.deploy.objects import Object, Render

Somebody = Callable[..., ApiServer]

ENABLED = ("assigner.enabled=true", 'assigner.tls.secretName="assigner-tls"')
NAME = "edgeshare-assigner-pods"
BY_NODE = 'spec.nodeName is "node-a", but the assigner chooses the node of a pod that asks for edge/gpu-percent'
BY_SCHEDULER = (
    'spec.schedulerName is "other", but a pod that asks for edge/gpu-percent is placed by a scheduler that asks the '
    "assigner: allowed are default-scheduler, edgeshare (policies.pods.schedulerNames of the chart)"
)
TENANT: list[Object] = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "tenant"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tenant"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
    },
]
"""Somebody who may make pods, and not assign devices."""


def pod(name: str, resource: str = GPU_PERCENT, kind: str = "containers", **spec: Any) -> Object:
    """A pod of one container, or of two where the first is of another kind, which asks for a part of a device."""
    asking = {"name": "main", "image": "none", "resources": {"limits": {resource: 50} if resource else {}}}
    beside = {} if kind == "containers" else {"containers": [{"name": "beside", "image": "none"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**beside, kind: [asking], **spec},
    }


def policy(render: Render, *values: str) -> list[Object]:
    """The policy and its binding."""
    return [each for each in render(*values) if each["metadata"]["name"] == NAME]


@pytest.fixture(scope="module")
def tenant(installed: ApiServer, render: Render, somebody: Somebody) -> ApiServer:
    """The API server as the tenant has it, once the policy is in force."""
    everything = {"apiVersion": "v1", "kind": "List", "items": [*TENANT, *policy(render, *ENABLED)]}
    done(installed.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(everything)))
    tenant = somebody("tenant")
    probe = json.dumps(pod("probe", nodeName="node-a"))
    until_told(lambda: tenant.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe).stderr, BY_NODE)
    return tenant


def test_pod_that_asks_for_a_gpu_names_neither_its_node_nor_another_scheduler(tenant: ApiServer) -> None:
    admitted, messages = tenant.admitted(
        [
            pod("node", nodeName="node-a"),
            pod("init", kind="initContainers", nodeName="node-a"),
            pod("scheduler", schedulerName="other"),
            pod("left"),
            pod("second", schedulerName="edgeshare"),
        ]
    )
    assert admitted == {"left", "second"}
    assert [BY_NODE in messages[0], BY_NODE in messages[1], BY_SCHEDULER in messages[2]] == [True] * 3


def test_pod_that_asks_for_none_is_its_makers_affair(tenant: ApiServer) -> None:
    own = {"nodeName": "node-a", "schedulerName": "other"}
    assert tenant.admitted([pod("none", "", **own), pod("tpu", TPU_PERCENT, **own)]) == ({"none", "tpu"}, [])


def test_who_may_assign_devices_and_a_kubelet_may_name_a_node(
    tenant: ApiServer, installed: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert installed.admitted([pod("by-who-may-assign", nodeName="node-a", schedulerName="other")]) == (
        {"by-who-may-assign"},
        [],
    )
    config = yaml.safe_load(tenant.kubeconfig.read_text())
    config["users"][0]["user"]["as-groups"] = ["system:nodes"]
    path = tmp_path_factory.mktemp("kubelet") / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    assert replace(tenant, kubeconfig=path).admitted([pod("mirror", nodeName="node-a")]) == ({"mirror"}, [])


def test_pod_of_a_daemon_set_is_left_to_the_scheduler(tenant: ApiServer) -> None:
    """As its controller makes it: with an affinity to its node's name."""
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}}
    assert tenant.admitted([pod("daemon", affinity=affinity)]) == ({"daemon"}, [])


def test_schedulers_that_ask_the_assigner_can_be_named(tenant: ApiServer, installed: ApiServer, render: Render) -> None:
    def apply(*values: str) -> None:
        objects = {"apiVersion": "v1", "kind": "List", "items": policy(render, *ENABLED, *values)}
        done(installed.kubectl("apply", "-f", "-", stdin=json.dumps(objects)))

    apply('policies.pods.schedulerNames=["only-one"]')
    probe = json.dumps(pod("probe"))
    said = "allowed are only-one (policies.pods.schedulerNames of the chart)"
    until_told(lambda: tenant.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe).stderr, said)
    assert tenant.admitted([pod("named", schedulerName="only-one")]) == ({"named"}, [])
    apply()


def test_without_the_assigner_or_the_policies_there_is_none(render: Render) -> None:
    assert policy(render, "scheduler.enabled=false") == []
    assert policy(render, *ENABLED, "policies.pods.enabled=false") == []
    assert len(policy(render, *ENABLED)) == 2
