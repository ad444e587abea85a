"""The chart's assigner: off until it is asked for, TLS unless told otherwise."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from edgeshare.cli import cli
from edgeshare.config_file import read_config
from sharemgr.cluster.config import Config, ObjectName
from sharemgr.cluster.replica.announcing import announcement
from tests.kit.deploy.assigner import ENABLED, NAME, WITH_SECRET
from tests.kit.deploy.objects import UNPRIVILEGED, Object, Render, only

ROOT = Path(__file__).parents[3]


def template(objects: list[Object]) -> Object:
    found: Object = only(objects, "Deployment", NAME)["spec"]["template"]
    return found


def config(objects: list[Object], folder: Path) -> Config:
    """What the assigner reads."""
    path = folder / "assigner.yaml"
    path.write_text(only(objects, "ConfigMap", NAME)["data"]["assigner.yaml"])
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
    (port,) = only(objects, "Service", NAME)["spec"]["ports"]
    assert port["name"] == "http"


def test_service_leads_to_where_it_listens(render: Render, tmp_path: Path) -> None:
    objects = render(*WITH_SECRET, "assigner.metricsPort=9999")
    read = config(objects, tmp_path)
    service, container = only(objects, "Service", NAME)["spec"], template(objects)["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert [(port["name"], port["port"]) for port in service["ports"]] == [("https", 9443)]
    assert "selector" not in service
    assert read.service == ObjectName(namespace="edgeshare", name=only(objects, "Service", NAME)["metadata"]["name"])
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
    rules = only(objects, "Role", NAME)["rules"]
    assert {name for rule in rules for name in rule.get("resourceNames", ())} == {NAME}
    deployment = only(objects, "Deployment", NAME)["spec"]
    assert deployment["replicas"] == 2
    (near,) = deployment["template"]["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert near["podAffinityTerm"]["labelSelector"] == deployment["selector"]


def test_update_and_drain_leave_one_that_is_ready(render: Render) -> None:
    objects = render(*WITH_SECRET)
    deployment = only(objects, "Deployment", NAME)["spec"]
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    budget = only(objects, "PodDisruptionBudget", NAME)["spec"]
    assert budget == {"maxUnavailable": 1, "selector": deployment["selector"]}


def test_changed_configuration_starts_it_anew_and_nothing_else(render: Render, tmp_path: Path) -> None:
    before, after = (
        render(*WITH_SECRET),
        render(*WITH_SECRET, 'assigner.config={"policy": "spread", "choice": "filter"}'),
    )
    assert config(after, tmp_path).policy == "spread"
    assert template(before) == template(render(*WITH_SECRET))
    assert template(before) != template(after)
    assert only(before, "DaemonSet") == only(after, "DaemonSet")


def test_it_is_started_with_options_that_it_knows(render: Render) -> None:
    started, *words = template(render(*WITH_SECRET))["spec"]["containers"][0]["command"]
    assert started == "edgeshare"
    done = CliRunner().invoke(cli, [*words, "--help"])
    assert done.exit_code == 0, done.output


def test_it_is_an_ordinary_user_with_no_power_who_writes_nothing_on_the_node(render: Render) -> None:
    spec = template(render(*WITH_SECRET))["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"] == UNPRIVILEGED
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
