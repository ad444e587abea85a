"""The chart's assigner: off until it is asked for, TLS unless told otherwise, and its rights at a real API server."""

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from click.testing import CliRunner

from edgeshare.cli import cli
from edgeshare.config_file import read_config
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import ACCELERATOR_NODES_CRD, GPU_ASSIGNMENT, GPU_RELEASED
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import Kube
from sharemgr.cluster.config import Config, ObjectName
from sharemgr.cluster.replica.announcing import announcement
from sharemgr.cluster.replica.api import KubeApi
from tests.kit.apiserver.api_server import ApiServer, Done, done, refused, until_told

ROOT = Path(__file__).parent.parent.parent
NAME = "edgeshare-assigner"
ACCOUNT = f"system:serviceaccount:edgeshare:{NAME}"
PLUGIN = "system:serviceaccount:edgeshare:edgeshare"
ENABLED = "assigner.enabled=true"
WITH_SECRET = (ENABLED, 'assigner.tls.secretName="assigner-tls"')
ALONE = f"of a Node the assigner writes the annotation {GPU_RELEASED} alone"

Object = dict[str, Any]
Render = Callable[..., list[Object]]
Somebody = Callable[..., ApiServer]
T = TypeVar("T")


def only(objects: list[Object], kind: str, name: str = NAME) -> Object:
    """The one object of a kind and a name: with nothing else named, of the assigner."""
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def template(objects: list[Object]) -> Object:
    found: Object = only(objects, "Deployment")["spec"]["template"]
    return found


def config(objects: list[Object], folder: Path) -> Config:
    """What the assigner reads."""
    path = folder / "assigner.yaml"
    path.write_text(only(objects, "ConfigMap")["data"]["assigner.yaml"])
    return read_config(path, Config)


def test_nothing_of_it_is_installed_where_neither_way_of_it_is_enabled(render: Render) -> None:
    def named(*values: str) -> set[str]:
        return {each["kind"] for each in render(*values) if NAME in each["metadata"]["name"]}

    assert named("scheduler.enabled=false") == set()
    assert {"Deployment", "Service", "ConfigMap", "ServiceAccount", "ClusterRole", "Role"} < named(*WITH_SECRET)


def test_where_it_is_nobody_is_warned_that_it_is_not(render: Render) -> None:
    def policies(*values: str) -> set[str]:
        return {each["metadata"]["name"] for each in render(*values) if each["kind"] == "ValidatingAdmissionPolicy"}

    assert "edgeshare-wishes" in policies("scheduler.enabled=false")
    assert "edgeshare-wishes" not in policies(*WITH_SECRET)


def test_without_a_secret_it_is_not_installed_and_says_how_one_is_made(render: Render) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(ENABLED)
    said = str(refused.value.stderr)
    assert "assigner.tls.secretName names no Secret" in said
    assert f"for the host name {NAME}.edgeshare.svc" in said
    assert f"edgeshare sharemgr certificates --apply --namespace edgeshare --service {NAME}" in said
    assert "cert-manager" in said
    assert "--set assigner.tls.enabled=false" in said


def test_it_answers_over_tls_with_the_files_of_the_secret(render: Render, tmp_path: Path) -> None:
    objects = render(*WITH_SECRET, 'assigner.tls.clients=["system:kube-scheduler", "second-scheduler"]')
    tls = config(objects, tmp_path).tls
    assert tls is not None
    assert tls.clients == ("system:kube-scheduler", "second-scheduler")
    spec = template(objects)["spec"]
    (volume,) = (each for each in spec["volumes"] if "secret" in each)
    (mount,) = (each for each in spec["containers"][0]["volumeMounts"] if each["name"] == volume["name"])
    # Nobody but its own group reads the key, and it is in that.
    assert (volume["secret"]["defaultMode"], spec["securityContext"]["fsGroup"]) == (0o440, 65532)
    assert volume["secret"]["secretName"] == "assigner-tls"
    assert [str(file) for file in tls.files] == [
        f"{mount['mountPath']}/{name}" for name in ("tls.crt", "tls.key", "ca.crt")
    ]


def test_only_kube_scheduler_is_let_in_by_default(render: Render, tmp_path: Path) -> None:
    tls = config(render(*WITH_SECRET), tmp_path).tls
    assert tls is not None
    assert (tls.clients, tls.client_authority is None) == (("system:kube-scheduler",), False)


def test_plain_http_has_to_be_asked_for(render: Render, tmp_path: Path) -> None:
    objects = render(ENABLED, "assigner.tls.enabled=false")
    assert config(objects, tmp_path).tls is None
    assert not [each for each in template(objects)["spec"]["volumes"] if "secret" in each]
    (port,) = only(objects, "Service")["spec"]["ports"]
    assert port["name"] == "http"


def test_service_leads_to_where_it_listens(render: Render, tmp_path: Path) -> None:
    objects = render(*WITH_SECRET, "assigner.metricsPort=9999")
    read = config(objects, tmp_path)
    service, container = only(objects, "Service")["spec"], template(objects)["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert [(port["name"], port["port"]) for port in service["ports"]] == [("https", 9443)]
    assert "selector" not in service
    assert read.service == ObjectName(namespace="edgeshare", name=only(objects, "Service")["metadata"]["name"])
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    told = announcement(read, fields | {"POD_IP": "10.0.0.7"})
    assert told is not None
    assert told.body["ports"] == [{"name": "https", "port": ports["verbs"], "protocol": "TCP"}]
    assert (read.address, read.metrics_address) == (f":{ports['verbs']}", f":{ports['metrics']}") == (":9443", ":9999")
    paths = {"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    for probe, path in paths.items():
        assert container[probe]["httpGet"] == {"path": path, "port": "metrics"}


def test_replicas_agree_by_a_lease_that_its_role_is_for(render: Render, tmp_path: Path) -> None:
    objects = render(*WITH_SECRET)
    assert config(objects, tmp_path).lease == ObjectName(namespace="edgeshare", name=NAME)
    rules = only(objects, "Role")["rules"]
    assert {name for rule in rules for name in rule.get("resourceNames", ())} == {NAME}
    deployment = only(objects, "Deployment")["spec"]
    assert deployment["replicas"] == 2
    (near,) = deployment["template"]["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert near["podAffinityTerm"]["labelSelector"] == deployment["selector"]


def test_update_and_drain_leave_one_that_is_ready(render: Render) -> None:
    objects = render(*WITH_SECRET)
    deployment = only(objects, "Deployment")["spec"]
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    budget = only(objects, "PodDisruptionBudget")["spec"]
    assert budget == {"maxUnavailable": 1, "selector": deployment["selector"]}


def test_changed_configuration_starts_it_anew_and_nothing_else(render: Render, tmp_path: Path) -> None:
    before, after = (
        render(*WITH_SECRET),
        render(*WITH_SECRET, 'assigner.config={"policy": "spread", "choice": "filter"}'),
    )
    assert config(after, tmp_path).policy == "spread"
    assert template(before) == template(render(*WITH_SECRET))
    assert template(before) != template(after)
    assert only(before, "DaemonSet", "edgeshare") == only(after, "DaemonSet", "edgeshare")


def test_it_is_started_with_options_that_it_knows(render: Render) -> None:
    started, *words = template(render(*WITH_SECRET))["spec"]["containers"][0]["command"]
    assert started == "edgeshare"
    done = CliRunner().invoke(cli, [*words, "--help"])
    assert done.exit_code == 0, done.output


def test_it_is_an_ordinary_user_with_no_power_who_writes_nothing_on_the_node(render: Render) -> None:
    spec = template(render(*WITH_SECRET))["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert not [each for each in spec["volumes"] if "hostPath" in each]
    assert not {"hostPID", "hostNetwork", "hostIPC"} & spec.keys()
    assert container["resources"]["limits"] == {"memory": "512Mi"}
    assert container["resources"]["requests"] == {"cpu": "100m", "memory": "64Mi"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('assigner.config.tls="x"', "at '/assigner/config': additional properties 'tls' not allowed"),
        ("assigner.config.bind_timeout_s=5", "at '/assigner/config/bind_timeout_s': exclusiveMaximum: got 5, want 5"),
        ('assigner.config.choice="random"', "at '/assigner/config/choice': value must be one of 'scores', 'filter'"),
        ("assigner.metricsPort=0", "at '/assigner/metricsPort': minimum: got 0, want 1"),
        ('assigner.tls.clients=[""]', "at '/assigner/tls/clients/0': minLength: got 0, want 1"),
        ('assigner.tls.secretName="Not_a_name"', "at '/assigner/tls/secretName': 'Not_a_name' does not match pattern"),
    ],
)
def test_wrong_value_is_refused_by_its_name(render: Render, value: str, said: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(*WITH_SECRET, value)
    assert said in refused.value.stderr


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


def create(server: ApiServer, thing: Object) -> Done:
    return server.kubectl("create", "-f", "-", stdin=json.dumps(thing))


def bind(server: ApiServer, name: str, annotations: dict[str, str]) -> Done:
    path = f"/api/v1/namespaces/default/pods/{name}/binding"
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-a"}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    thing = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    return server.kubectl("create", f"--raw={path}", "-f", "-", stdin=json.dumps(thing))


@pytest.fixture(scope="module")
def with_assigner(installed: ApiServer, render: Render) -> ApiServer:
    """The API server with the assigner's objects, too, and a node."""
    objects = [each for each in render(*WITH_SECRET) if NAME in each["metadata"]["name"]]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    done(installed.kubectl("apply", "--validate=strict", "-f", "-", stdin=everything))
    done(create(installed, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}}))
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
    done = with_assigner.kubectl("auth", "can-i", f"--as={ACCOUNT}", *right.split())
    assert done.stdout.strip() == answer


def test_it_assigns_in_the_binding_and_the_plugin_does_not_write_over_that(
    with_assigner: ApiServer, assigner: Path, somebody: Somebody
) -> None:
    for name in ("assigned", "packed"):
        done(create(with_assigner, pod(name)))
    plugin = somebody(PLUGIN, "node-a")
    # kube-scheduler itself may bind, and not assign.
    said = 'is written by edgeshare alone (right "set" on "assignments" in "share.edge"): leave it out'
    refused(bind(somebody("system:kube-scheduler"), "assigned", {GPU_ASSIGNMENT: "x"}), said)
    read = asked(assigner, lambda api: api.read("default", "assigned"))
    assert read is not None
    placed = replace(read, node="node-a", assignment='{"main":["GPU-a"]}')
    asked(assigner, lambda api: api.bind(placed))
    bound = asked(assigner, lambda api: api.read("default", "assigned"))
    assert bound is not None
    assert (bound.node, bound.assignment) == (placed.node, placed.assignment)
    once = f"annotation {GPU_ASSIGNMENT} where nobody else assigned the pod its devices, and once"
    refused(plugin.kubectl("annotate", "--overwrite", "pod", "assigned", f"{GPU_ASSIGNMENT}=y"), once)
    refused(plugin.kubectl("annotate", "pod", "assigned", f"{GPU_ASSIGNMENT}-"), once)
    done(bind(with_assigner, "packed", {}))
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


def test_page_on_values_names_every_value_of_it() -> None:
    page = (ROOT / "docs/install/values.md").read_text()
    schema = json.loads((ROOT / "deploy/chart/values.schema.json").read_text())
    values = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text())["assigner"]
    assert values.keys() == schema["properties"]["assigner"]["properties"].keys()
    names = {f"assigner.{name}" for name in values.keys() - {"tls"}} | {
        f"assigner.tls.{name}" for name in values["tls"]
    }
    names |= schema["$defs"]["assigner"]["properties"].keys()
    assert {name for name in names if f"`{name}`" not in page} == set()
