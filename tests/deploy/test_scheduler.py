"""The chart's own kube-scheduler, in one pod with the assigner that it asks: no certificate is needed, and nothing of
the cluster's own scheduler is changed."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from edgeshare.config_file import read_config
from edgeshare.contract.accelerator_kind import RESOURCES
from edgeshare.contract.names import GPU_PERCENT, TPU_PERCENT
from sharemgr.cluster.config import Config, ObjectName
from tests.kit.apiserver.api_server import ApiServer, done, until_told
from tests.kit.deploy.assigner import NAME
from tests.kit.deploy.blocks import blocks
from tests.kit.deploy.objects import Object, Render
from tests.kit.deploy.rights import until_may
from tests.kit.deploy.scheduler import ENABLED, IMAGE, LEASE, configuration, containers, of_kind
from tests.kit.programs.binaries import KUBERNETES, program

ACCOUNT = f"system:serviceaccount:edgeshare:{NAME}"
V1 = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
V1BETA1 = "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"

Somebody = Callable[..., ApiServer]


def test_both_are_in_one_pod_and_need_neither_certificate_nor_service(render: Render, tmp_path: Path) -> None:
    objects = render(*ENABLED)
    assert of_kind(objects, "Service") == []
    (deployment,) = of_kind(objects, "Deployment")
    assert deployment["spec"]["replicas"] == 2
    assert not [each for each in deployment["spec"]["template"]["spec"]["volumes"] if "secret" in each]
    assert containers(objects).keys() == {"assigner", "kube-scheduler"}
    assert containers(objects)["kube-scheduler"]["image"] == IMAGE
    path = tmp_path / "assigner.yaml"
    path.write_text(configuration(objects, "assigner.yaml"))
    read = read_config(path, Config)
    (extender,) = yaml.safe_load(configuration(objects, "scheduler.yaml"))["extenders"]
    # Nobody outside of the pod reaches it, so that there is nothing to warn of.
    assert (read.address, read.is_local, read.openness) == ("127.0.0.1:9443", True, "")
    assert extender["urlPrefix"] == f"http://{read.address}"
    # It is asked of whatever is shared.
    assert [each["name"] for each in extender["managedResources"]] == list(RESOURCES)


def test_an_assigner_that_is_enabled_is_asked_in_its_place(render: Render) -> None:
    assigner = ("assigner.enabled=true", "assigner.tls.enabled=false")
    assert render(*assigner) == render(*assigner, "scheduler.enabled=false")
    assert containers(render(*assigner)).keys() == {"assigner"}


def test_there_is_one_lease_which_its_role_is_for(render: Render, tmp_path: Path) -> None:
    objects = render(*ENABLED)
    path = tmp_path / "assigner.yaml"
    path.write_text(configuration(objects, "assigner.yaml"))
    read = read_config(path, Config)
    election = yaml.safe_load(configuration(objects, "scheduler.yaml"))["leaderElection"]
    assert read.scheduler_lease == ObjectName(namespace=election["resourceNamespace"], name=election["resourceName"])
    assert (read.lease, read.service) == (None, None)
    (role,) = of_kind(objects, "Role")
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, [LEASE]]


def test_neither_container_has_any_power_over_the_node(render: Render) -> None:
    scheduler, assigner = (containers(render(*ENABLED))[name] for name in ("kube-scheduler", "assigner"))
    assert scheduler["securityContext"] == assigner["securityContext"]
    assert scheduler["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert scheduler["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_changed_configuration_of_either_starts_both_anew(render: Render) -> None:
    def checksum(*values: str) -> str:
        (deployment,) = of_kind(render(*ENABLED, *values), "Deployment")
        return str(deployment["spec"]["template"]["metadata"]["annotations"]["edge/config-checksum"])

    assert len({checksum(), checksum('scheduler.name="shares"'), checksum('assigner.config={"policy": "fgd"}')}) == 3


def test_a_name_that_is_a_number_elsewhere_is_a_name_here(render: Render) -> None:
    read = yaml.safe_load(configuration(render(*ENABLED, 'scheduler.name="123"'), "scheduler.yaml"))
    assert read["profiles"] == [{"schedulerName": "123"}]


def test_kube_scheduler_takes_its_configuration(render: Render, installed: ApiServer, tmp_path: Path) -> None:
    given, taken = tmp_path / "given.yaml", tmp_path / "taken.yaml"
    values = ('scheduler.name="shares"', "scheduler.percentageOfNodesToScore=100")
    text = configuration(render(*ENABLED, *values), "scheduler.yaml")
    # In its pod it asks with its service account.
    given.write_text(f"{text}clientConnection: {{kubeconfig: {installed.kubeconfig}}}\n")
    words = [program(KUBERNETES, "kube-scheduler"), f"--config={given}", f"--write-config-to={taken}"]
    done = subprocess.run([*words, "--secure-port=0"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    read = yaml.safe_load(taken.read_text())
    assert read["extenders"] == yaml.safe_load(text)["extenders"]
    assert [profile["schedulerName"] for profile in read["profiles"]] == ["shares"]
    assert read["percentageOfNodesToScore"] == 100
    assert (read["leaderElection"]["resourceName"], read["leaderElection"]["leaderElect"]) == (LEASE, True)


@pytest.mark.parametrize(
    ("kinds", "version"), [((), None), ((V1BETA1,), "v1beta1"), ((V1,), "v1"), ((V1BETA1, V1), "v1")]
)
def test_policy_is_of_the_newest_version_that_the_api_server_has(
    render: Render, kinds: tuple[str, ...], version: str | None
) -> None:
    found = of_kind(render(*ENABLED, kinds=kinds), "MutatingAdmissionPolicy")
    assert [each["apiVersion"].partition("/")[2] for each in found] == ([version] if version else [])


@pytest.mark.parametrize(("version", "count"), [("1.35.9", 0), ("1.36.0", 1), ("1.36.3-gke.1", 1), ("1.40.0", 1)])
def test_policy_is_there_by_the_version_alone(render: Render, version: str, count: int) -> None:
    found = of_kind(render(*ENABLED, version=version), "MutatingAdmissionPolicy")
    assert [each["apiVersion"].partition("/")[2] for each in found] == ["v1"] * count


@pytest.fixture(scope="module")
def tenant(installed: ApiServer, render: Render, somebody: Somebody) -> Iterator[ApiServer]:
    """Somebody who may make pods, at an API server with the scheduler's objects while its policies are in force."""
    objects = [each for each in render(*ENABLED, kinds=(V1,)) if "assigner" in json.dumps(each["metadata"])]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "pods-tenant"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}],
    }
    everything = {"apiVersion": "v1", "kind": "List", "items": [*objects, role]}
    done(installed.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(everything)))
    done(
        installed.kubectl("create", "clusterrolebinding", "pods-tenant", "--clusterrole=pods-tenant", "--user=somebody")
    )
    tenant = somebody("somebody")
    until_told(lambda: made(tenant, pod("probe"))[0], "edgeshare")
    until_told(lambda: made(tenant, pod("probe", scheduler="other"))[1], "(scheduler.name of the chart)")
    yield tenant
    # Other tests have this API server after these.
    done(installed.kubectl("delete", "-f", "-", stdin=json.dumps(everything)))
    done(installed.kubectl("delete", "clusterrolebinding", "pods-tenant"))
    until_told(lambda: made(installed, pod("probe"))[0], "default-scheduler")


def pod(
    name: str, resource: str = GPU_PERCENT, scheduler: str = "", kind: str = "containers", node: str = ""
) -> Object:
    """A pod of one container that asks for a part of a device, or for none."""
    asking = {"name": "main", "image": "none", "resources": {"limits": {resource: 50} if resource else {}}}
    spec: Object = {"containers": [{"name": "beside", "image": "none"}], kind: [asking]}
    if scheduler:
        spec["schedulerName"] = scheduler
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def documented_pods() -> Iterator[Object]:
    """Those of all pages that stand there whole, and those that their controllers would make."""
    for block in blocks():
        for each in yaml.safe_load_all(block.text) if block.language == "yaml" and not block.marked else ():
            if isinstance(each, dict) and "spec" in each and "kind" in each:
                metadata = {"name": each["metadata"]["name"], "namespace": "default"}
                template = each if each["kind"] == "Pod" else each["spec"].get("template", {"spec": {}})
                noted = {key: value for key, value in template.get("metadata", {}).items() if key == "annotations"}
                yield {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, **noted}, "spec": template["spec"]}


def asks_for_a_share(spec: Object) -> bool:
    """Whether one of a pod's containers does."""
    return any(
        resource in each.get("resources", {}).get("limits", {})
        for each in spec.get("containers", [])
        for resource in RESOURCES
    )


def made(server: ApiServer, thing: Object) -> tuple[str, str]:
    """The scheduler that a pod would have, and why it may not be made."""
    words = ("create", "--dry-run=server", "--output=jsonpath={.spec.schedulerName}", "-f", "-")
    answer = server.kubectl(*words, stdin=json.dumps(thing))
    return answer.stdout, answer.stderr


@pytest.mark.parametrize(
    ("asked", "scheduler"),
    [
        (pod("gpu"), "edgeshare"),
        (pod("tpu", TPU_PERCENT), "edgeshare"),
        (pod("first", kind="initContainers"), "edgeshare"),
        (pod("said", scheduler="edgeshare"), "edgeshare"),
        (pod("none", ""), "default-scheduler"),
        (pod("another", "", scheduler="other"), "other"),
        (pod("tpu-of-another", TPU_PERCENT, scheduler="other"), "other"),
        (pod("tpu-on-its-node", TPU_PERCENT, node="n1"), "default-scheduler"),
    ],
    ids=lambda value: value["metadata"]["name"] if isinstance(value, dict) else None,
)
def test_who_asks_for_a_share_and_names_no_scheduler_gets_this_one(
    tenant: ApiServer, asked: Object, scheduler: str
) -> None:
    assert made(tenant, asked)[0] == scheduler


def test_who_asks_for_a_gpu_and_names_another_is_told_which(tenant: ApiServer) -> None:
    _, why = made(tenant, pod("wrong", scheduler="other"))
    assert (
        'spec.schedulerName is "other", but a pod that asks for edge/gpu-percent is placed by a scheduler that asks'
        in why
    )
    assert "allowed are edgeshare (scheduler.name of the chart)" in why


@pytest.mark.parametrize("named", [False, True], ids=["given it", "named"])
def test_pods_of_the_documents_are_placed_by_this_one(tenant: ApiServer, named: bool) -> None:
    pods = [each for each in documented_pods() if asks_for_a_share(each["spec"])]
    assert len(pods) > 8
    for each in pods:
        spec = {**each["spec"], **({"schedulerName": "edgeshare"} if named else {})}
        # This API server need not have it.
        spec.pop("runtimeClassName", None)
        assert made(tenant, {**each, "spec": spec}) == ("edgeshare", ""), each["metadata"]["name"]


@pytest.mark.usefixtures("tenant")
@pytest.mark.parametrize(
    ("right", "answer"),
    [
        (f"update leases.coordination.k8s.io/{LEASE} --namespace=edgeshare", "yes"),
        (f"watch leases.coordination.k8s.io/{LEASE} --namespace=edgeshare", "yes"),
        ("create leases.coordination.k8s.io --namespace=edgeshare", "yes"),
        ("update leases.coordination.k8s.io/another --namespace=edgeshare", "no"),
        ("create pods --subresource=binding --all-namespaces", "yes"),
        ("delete pods --all-namespaces", "yes"),
        ("patch pods --subresource=status --all-namespaces", "yes"),
        ("update persistentvolumes", "yes"),
        ("list persistentvolumeclaims --all-namespaces", "yes"),
        ("create tokenreviews.authentication.k8s.io", "yes"),
        ("get configmaps/extension-apiserver-authentication --namespace=kube-system", "yes"),
        ("create endpointslices.discovery.k8s.io --namespace=edgeshare", "no"),
        ("get secrets --namespace=edgeshare", "no"),
        ("create pods --namespace=edgeshare", "no"),
    ],
)
def test_its_account_may_do_what_a_kube_scheduler_does_and_what_the_assigner_does(
    installed: ApiServer, right: str, answer: str
) -> None:
    until_may(installed, ACCOUNT, right, answer)
