"""What of a share takes a right to ask for: an exclusion of its own, and the latency class where that is asked for."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgeshare.contract.names import GPU_PERCENT, TPU_PERCENT
from tests.kit.apiserver.api_server import ApiServer, done, refused, until_told
from tests.kit.deploy.objects import Object, Render

Somebody = Callable[..., ApiServer]

PAGE = Path(__file__).parent.parent.parent / "docs/run/quotas.md"

ENABLED = ("assigner.enabled=true", 'assigner.tls.secretName="assigner-tls"')
ALL = (*ENABLED, "policies.rights.latency=true")
TEAM, OTHERS = "rights-team", "rights-others"
EXCLUDES = {"labels": {"edge/gpu-exclusion": "mine"}}
HURRIES = {"annotations": {"edge/share-class": "latency"}}
NO_EXCLUSION = 'edge/gpu-exclusion: mine needs the right "use" on "gpuexclusions" in "share.edge"'
NO_HURRY = 'edge/share-class: latency needs the right "use" on "latencyclasses" in "share.edge"'


def role(name: str, group: str, resources: list[str], verb: str = "*") -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [group], "resources": resources, "verbs": [verb]}],
    }


def binding(called: str, namespace: str, of: str, /, **subject: str) -> Object:
    api = {} if subject["kind"] == "ServiceAccount" else {"apiGroup": "rbac.authorization.k8s.io"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": called, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": of},
        "subjects": [{**subject, **api}],
    }


def tenants(namespace: str) -> list[Object]:
    """A namespace in which a maker may make pods, with two service accounts."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": each, "namespace": namespace}}
            for each in ("default", "server")
        ),
        binding("maker", namespace, "rights-maker", kind="User", name="maker"),
        binding("entitled", namespace, "rights-maker", kind="User", name="entitled"),
    ]


WORLD: list[Object] = [
    role("rights-maker", "", ["pods", "pods/status"]),
    role("rights-all", "share.edge", ["gpuexclusions", "latencyclasses"], "use"),
    *tenants(TEAM),
    *tenants(OTHERS),
    binding("entitled-to", TEAM, "rights-all", kind="User", name="entitled"),
    binding("server", TEAM, "rights-all", kind="ServiceAccount", name="server", namespace=TEAM),
    binding("server-of-the-team", OTHERS, "rights-all", kind="ServiceAccount", name="server", namespace=TEAM),
]


def pod(name: str, asks: int = 1, account: str = "default", **metadata: Any) -> Object:
    limits = {GPU_PERCENT: asks} if asks else {}
    main = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"serviceAccountName": account, "containers": [main]},
    }


def policy(render: Render, *values: str) -> list[Object]:
    """What the chart makes for rights."""
    return [each for each in render(*values) if each["metadata"]["name"] == "edgeshare-rights"]


def make(server: ApiServer, namespace: str, made: Object) -> "subprocess.CompletedProcess[str]":
    words = ("create", "--dry-run=server", f"--namespace={namespace}", "-f", "-")
    return server.kubectl(*words, stdin=json.dumps(made))


@pytest.fixture(scope="module")
def cluster(installed: ApiServer, render: Render, somebody: Somebody) -> ApiServer:
    """The API server, once both rights are asked for; only pods in the namespaces of this module are looked at."""
    objects = policy(render, *ALL)
    (bound,) = [each for each in objects if each["kind"] == "ValidatingAdmissionPolicyBinding"]
    chosen = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [TEAM, OTHERS]}
    bound["spec"]["matchResources"] = {"namespaceSelector": {"matchExpressions": [chosen]}}
    everything = {"apiVersion": "v1", "kind": "List", "items": [*WORLD, *objects]}
    done(installed.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(everything)))
    maker, entitled = somebody("maker"), somebody("entitled")
    until_told(lambda: make(maker, TEAM, pod("probe", **EXCLUDES)).stderr, NO_EXCLUSION)
    # Of rights the API server learns by a watch.
    until_told(lambda: make(entitled, TEAM, pod("probe", **EXCLUDES)).stdout, "pod/probe created")
    until_told(lambda: make(maker, TEAM, pod("probe", account="server", **EXCLUDES)).stdout, "pod/probe created")
    return installed


def test_chart_asks_for_the_right_of_an_exclusion_with_the_assigner_and_for_the_latency_class_where_it_is_told(
    render: Render,
) -> None:
    assert policy(render, "scheduler.enabled=false") == []
    said = json.dumps(policy(render, *ENABLED))
    assert "gpuexclusions" in said
    assert "latencyclasses" not in said
    said = json.dumps(policy(render, "scheduler.enabled=false", "policies.rights.latency=true"))
    assert "gpuexclusions" not in said
    assert "latencyclasses" in said
    assert policy(render, *ENABLED, "policies.rights.gpuExclusion=false") == []


@pytest.mark.parametrize(("metadata", "said"), [(EXCLUDES, NO_EXCLUSION), (HURRIES, NO_HURRY)])
def test_it_takes_the_right_of_the_maker_or_of_the_service_account_in_that_namespace(
    cluster: ApiServer, somebody: Somebody, metadata: Object, said: str
) -> None:
    maker, entitled = somebody("maker"), somebody("entitled")
    refused(make(maker, TEAM, pod("a", **metadata)), said)
    done(make(entitled, TEAM, pod("b", **metadata)))
    done(make(maker, TEAM, pod("c", account="server", **metadata)))
    done(make(cluster, TEAM, pod("d", **metadata)))
    # Neither right is one in the other namespace, nor is an account of the first that of the same name there.
    refused(make(entitled, OTHERS, pod("e", **metadata)), said)
    refused(make(maker, OTHERS, pod("f", account="server", **metadata)), said)


def test_pod_without_a_share_or_without_a_wish_takes_none(cluster: ApiServer, somebody: Somebody) -> None:
    maker = somebody("maker")
    done(make(maker, TEAM, pod("none", asks=0, **EXCLUDES)))
    done(make(maker, TEAM, pod("plain")))
    done(make(maker, TEAM, pod("batch", annotations={"edge/share-class": "batch"})))
    done(make(maker, TEAM, pod("empty", labels={"edge/gpu-exclusion": ""})))


@pytest.mark.parametrize(("where", "resource"), [("initContainers", GPU_PERCENT), ("containers", TPU_PERCENT)])
def test_a_share_of_any_container_and_of_any_kind_takes_it(
    cluster: ApiServer, somebody: Somebody, where: str, resource: str
) -> None:
    made = pod("any", asks=0, **EXCLUDES)
    asking = {"name": "asks", "image": "none", "resources": {"limits": {resource: 1}}}
    made["spec"][where] = [*made["spec"].get(where, []), asking]
    refused(make(somebody("maker"), TEAM, made), NO_EXCLUSION)
    done(make(cluster, TEAM, made))


def test_right_is_asked_for_of_who_writes_it_later_and_of_nobody_who_writes_something_else(
    cluster: ApiServer, somebody: Somebody
) -> None:
    maker, here = somebody("maker"), f"--namespace={TEAM}"
    done(cluster.kubectl("create", here, "-f", "-", stdin=json.dumps(pod("later"))))
    refused(maker.kubectl("label", here, "pod", "later", "edge/gpu-exclusion=mine"), NO_EXCLUSION)
    refused(maker.kubectl("annotate", here, "pod", "later", "edge/share-class=latency"), NO_HURRY)
    # The subresource takes changed labels and annotations too.
    change = json.dumps({"metadata": EXCLUDES})
    refused(maker.kubectl("patch", here, "pod", "later", "--subresource=status", f"--patch={change}"), NO_EXCLUSION)
    done(cluster.kubectl("label", here, "pod", "later", "edge/gpu-exclusion=mine"))
    done(maker.kubectl("label", here, "pod", "later", "app=web"))


def example(kind: str) -> list[Object]:
    """The objects of a kind that the page on quotas has as an example."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    objects = [each for block in blocks if "apiVersion:" in block for each in yaml.safe_load_all(block)]
    return [each for each in objects if each["kind"] == kind]


def test_quota_of_the_page_bounds_the_parts_of_a_namespace(cluster: ApiServer) -> None:
    (quota,) = example("ResourceQuota")
    hard = quota["spec"]["hard"]
    assert hard == {"requests.edge/gpu-percent": "200", "requests.edge/gpu-memory-mib": "32768"}
    quota["metadata"]["namespace"] = OTHERS
    done(cluster.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(quota)))
    # A controller's work, of which there is none here: the API server goes by it.
    used = {"requests.edge/gpu-percent": "150", "requests.edge/gpu-memory-mib": "0"}
    status = json.dumps({"status": {"hard": hard, "used": used}})
    name = quota["metadata"]["name"]
    patch = ("patch", "resourcequota", name, f"--namespace={OTHERS}", "--subresource=status", "--type=merge")
    done(cluster.kubectl(*patch, f"--patch={status}"))

    def capped(percent: int) -> Object:
        asking = pod(f"of-{percent}")
        asking["spec"]["containers"][0]["resources"]["limits"] = {GPU_PERCENT: percent, "edge/gpu-memory-mib": 4096}
        return asking

    until_told(lambda: make(cluster, OTHERS, capped(60)).stderr, "exceeded quota: gpu-shares")
    done(make(cluster, OTHERS, capped(50)))
    # Unlike a quota of CPU it takes in who names no memory, and counts nothing for it.
    done(make(cluster, OTHERS, pod("uncapped")))


def test_page_gives_a_namespace_both_rights(cluster: ApiServer, somebody: Somebody) -> None:
    (given,) = example("ClusterRole")
    (bound,) = example("RoleBinding")
    namespace = bound["metadata"]["namespace"] = OTHERS
    (group,) = bound["subjects"]
    group["name"] = re.sub(r"[^:]+$", namespace, group["name"])
    everything = {"apiVersion": "v1", "kind": "List", "items": [given, bound]}
    done(cluster.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(everything)))
    maker = somebody("maker")
    asking = pod("given", **EXCLUDES, **HURRIES)
    asking["spec"]["containers"][0]["resources"]["limits"]["edge/gpu-memory-mib"] = 1024
    until_told(lambda: make(maker, namespace, asking).stdout, "pod/given created")
