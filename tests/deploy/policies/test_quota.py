"""Priority classes of the chart's pods, and the quota by which a cluster that is careful with these admits them: at a
real API server, configured as Kubernetes' page on quotas has it ("Limit Priority Class consumption by default")."""

import json
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.kit.apiserver.api_server import ApiServer, Done, api_server, done, until_told
from tests.kit.deploy.objects import Object, Render

NODE_CRITICAL, CLUSTER_CRITICAL = "system-node-critical", "system-cluster-critical"
ENABLED = "resourceQuota.enabled=true"
SCHEDULER = ("scheduler.enabled=true", 'scheduler.image="registry.example/kube-scheduler:v1.30.3"')
LIMITED = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "ResourceQuota",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "ResourceQuotaConfiguration",
                "limitedResources": [
                    {
                        "resource": "pods",
                        "matchScopes": [
                            {
                                "scopeName": "PriorityClass",
                                "operator": "In",
                                "values": [NODE_CRITICAL, CLUSTER_CRITICAL],
                            }
                        ],
                    }
                ],
            },
        }
    ],
}


def quotas(objects: list[Object]) -> list[Object]:
    return [each for each in objects if each["kind"] == "ResourceQuota"]


def classes(objects: list[Object]) -> dict[str, str | None]:
    """The priority class of the pods of each DaemonSet and Deployment."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"].get("priorityClassName")
        for each in objects
        if each["kind"] in ("DaemonSet", "Deployment")
    }


@pytest.mark.parametrize(
    ("values", "counted"),
    [
        ((), [NODE_CRITICAL, CLUSTER_CRITICAL]),
        (("scheduler.enabled=false",), [NODE_CRITICAL]),
        (SCHEDULER, [NODE_CRITICAL, CLUSTER_CRITICAL]),
        ((*SCHEDULER, f'assigner.priorityClassName="{NODE_CRITICAL}"'), [NODE_CRITICAL]),
        ((*SCHEDULER, 'assigner.priorityClassName=""', 'priorityClassName="high"'), ["high"]),
    ],
)
def test_quota_counts_the_classes_that_the_charts_pods_have(
    render: Render, values: tuple[str, ...], counted: list[str]
) -> None:
    assert quotas(render(*values)) == []
    objects = render(ENABLED, *values)
    (quota,) = quotas(objects)
    assert quota["metadata"]["namespace"] == "edgeshare"
    (by_class,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert by_class == {"scopeName": "PriorityClass", "operator": "In", "values": counted}
    assert set(classes(objects).values()) - {None} == set(counted)


@pytest.mark.parametrize(
    "values", [SCHEDULER, ("assigner.enabled=true", "assigner.tls.enabled=false")], ids=["beside", "alone"]
)
def test_assigners_pods_have_the_class_that_is_named_and_no_others_have(
    render: Render, values: tuple[str, ...]
) -> None:
    nodes = {"edgeshare": NODE_CRITICAL, "edgeshare-labeller": NODE_CRITICAL}
    assert classes(render(*values)) == {**nodes, "edgeshare-assigner": CLUSTER_CRITICAL}
    assert classes(render(*values, 'assigner.priorityClassName="123"')) == {**nodes, "edgeshare-assigner": "123"}
    assert classes(render(*values, 'assigner.priorityClassName=""')) == {**nodes, "edgeshare-assigner": None}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('resourceQuota.hard={"pods": -1}', "at '/resourceQuota/hard/pods'"),
        ('resourceQuota.hard={"pods": null}', "at '/resourceQuota/hard': minProperties"),
        ('resourceQuota.pods="1"', "at '/resourceQuota': additional properties 'pods' not allowed"),
        ('assigner.priorityClassName="Two Words"', "at '/assigner/priorityClassName'"),
    ],
)
def test_wrong_value_is_refused_by_its_name(render: Render, value: str, said: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        render(ENABLED, value)
    assert said in refusal.value.stderr


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that admits pods of the two classes only where a quota counts them. It has the release's
    namespace."""
    state = tmp_path_factory.mktemp("careful")
    config = state / "admission.yaml"
    config.write_text(yaml.safe_dump(LIMITED))
    with api_server(state, f"--admission-control-config-file={config}") as server:
        done(server.kubectl("create", "namespace", "edgeshare"))
        for name in (NODE_CRITICAL, CLUSTER_CRITICAL):
            # It makes them when it is ready already.
            done(server.kubectl("wait", "--for=create", f"priorityclass/{name}", "--timeout=60s"))
        yield server


def make(server: ApiServer, objects: list[Object], workload: str) -> Done:
    """A pod as the DaemonSet or Deployment of that name makes it, once the API server has its service account."""
    (found,) = [
        each for each in objects if each["kind"] in ("DaemonSet", "Deployment") and each["metadata"]["name"] == workload
    ]
    spec = found["spec"]["template"]["spec"]
    account = ("create", "serviceaccount", spec["serviceAccountName"], "--namespace=edgeshare")
    said = server.kubectl(*account)
    assert said.returncode == 0 or "already exists" in said.stderr, said.stderr
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": workload, "namespace": "edgeshare"}, "spec": spec}
    return server.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))


def test_careful_cluster_admits_the_charts_pods_with_the_quota_and_not_without(
    careful: ApiServer, render: Render
) -> None:
    objects = render(ENABLED, *SCHEDULER, 'resourceQuota.hard={"pods": 2}')
    for workload in classes(objects):
        # Of a class of priority, too, it learns by a watch.
        said = "insufficient quota to match these scopes"
        until_told(lambda workload=workload: make(careful, objects, workload).stderr, said)  # type: ignore[misc]
    (quota,) = quotas(objects)
    done(careful.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(quota)))

    def count(used: int) -> None:
        """A controller's work, of which there is none here: the API server goes by it."""
        status = json.dumps({"status": {"hard": {"pods": "2"}, "used": {"pods": str(used)}}})
        words = ("patch", "resourcequota", "edgeshare", "--namespace=edgeshare", "--subresource=status")
        done(careful.kubectl(*words, "--type=merge", f"--patch={status}"))

    count(2)
    until_told(lambda: make(careful, objects, "edgeshare").stderr, "exceeded quota: edgeshare")
    count(0)
    until_told(lambda: make(careful, objects, "edgeshare").stdout, "pod/edgeshare created")
    for workload in classes(objects):
        done(make(careful, objects, workload))


def test_careful_cluster_admits_an_assigner_without_such_a_class_anyway(careful: ApiServer, render: Render) -> None:
    done(make(careful, render(*SCHEDULER, 'assigner.priorityClassName=""'), "edgeshare-assigner"))
