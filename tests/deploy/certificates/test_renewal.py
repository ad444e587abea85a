"""The chart's CronJob that renews certificates: there where it is asked for, and its rights at a real API server."""

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from edgeshare.cli import cli
from edgeshare.kube.kube import Kube
from edgeshare.kube.messages import Refused
from sharemgr.cluster.issuing.issuing import issue
from sharemgr.cluster.issuing.kube_secrets import KubeSecrets
from sharemgr.cluster.issuing.renewal import for_assigner, service_hosts
from tests.kit.apiserver.api_server import ApiServer, done, until_told
from tests.kit.deploy.objects import Object, Render

NAME = "edgeshare-certificates"
ACCOUNT = f"system:serviceaccount:edgeshare:{NAME}"
SECRET = "renewed-tls"
ASSIGNER = ("assigner.enabled=true", f'assigner.tls.secretName="{SECRET}"')
RENEWED = (*ASSIGNER, "assigner.tls.renew=true")


def of_it(objects: list[Object]) -> dict[str, Object]:
    """Its objects, by kind."""
    return {each["kind"]: each for each in objects if each["metadata"]["name"] == NAME}


def pod(objects: list[Object]) -> Object:
    spec: Object = of_it(objects)["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(
    "values",
    [
        (),
        ASSIGNER,
        ("assigner.tls.renew=true",),
        (*RENEWED, "assigner.tls.enabled=false"),
        ("assigner.tls.renew=true", "scheduler.enabled=true", 'scheduler.image="kube-scheduler:1"'),
    ],
)
def test_there_is_none_unless_it_is_asked_for_and_there_is_something_to_renew(
    render: Render, values: tuple[str, ...]
) -> None:
    assert of_it(render(*values)) == {}


def test_it_is_a_cron_job_with_an_account_a_role_and_a_policy_of_its_own(render: Render) -> None:
    found = of_it(render(*RENEWED))
    assert found.keys() == {"ServiceAccount", "Role", "RoleBinding", "NetworkPolicy", "CronJob"}
    assert found["CronJob"]["spec"]["concurrencyPolicy"] == "Forbid"
    assert pod(render(*RENEWED))["serviceAccountName"] == NAME
    assert "NetworkPolicy" not in of_it(render(*RENEWED, "networkPolicies.enabled=false"))


def test_it_is_an_ordinary_user_with_no_power_who_has_the_assigners_image(render: Render) -> None:
    objects = render(*RENEWED, 'assigner.image={"repository": "whole", "tag": "3"}', 'imagePullSecrets=[{"name": "a"}]')
    (container,) = pod(objects)["containers"]
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    (assigner,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == assigner["image"] == "whole:3"
    assert container["securityContext"] == assigner["securityContext"]
    assert pod(objects)["imagePullSecrets"] == [{"name": "a"}]
    assert {each["name"] for each in pod(objects)["volumes"]} == {"api-access"}


def test_nothing_that_selects_the_assigners_pods_selects_its(render: Render) -> None:
    objects = render(*RENEWED)
    template = of_it(objects)["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]
    selectors = [
        each["spec"]["selector"].get("matchLabels", each["spec"]["selector"])
        for each in objects
        if each.get("spec", {}).get("selector")
    ]
    assert selectors
    assert not [each for each in selectors if each.items() <= template["metadata"]["labels"].items()]


def test_wrong_value_is_refused_by_its_name(render: Render) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(*ASSIGNER, 'assigner.tls.renew="yes"')
    assert "at '/assigner/tls/renew': got string, want boolean" in refused.value.stderr


@pytest.fixture(scope="module")
def cluster(installed: ApiServer, render: Render) -> ApiServer:
    """The API server with the CronJob's objects, once its rights are known."""
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*of_it(render(*RENEWED)).values()]})
    done(installed.kubectl("apply", "--validate=strict", "-f", "-", stdin=everything))
    asked = ("auth", "can-i", f"--as={ACCOUNT}", "--namespace=edgeshare", "get", f"secrets/{SECRET}")
    until_told(lambda: installed.kubectl(*asked).stdout, "yes")
    return installed


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        *(
            (f"{verb} secrets/{SECRET}{each}", "yes")
            for verb in ("get", "update")
            for each in ("-ca", "", "-scheduler")
        ),
        *((f"{verb} secrets/{SECRET}", "no") for verb in ("patch", "delete", "list", "watch")),
        *((f"{verb} secrets", "no") for verb in ("create", "get", "list", "update")),
        ("get secrets/another", "no"),
        ("get configmaps", "no"),
        ("get pods", "no"),
    ],
)
def test_it_may_get_and_update_its_three_secrets_and_nothing_else(cluster: ApiServer, right: str, answer: str) -> None:
    asked = cluster.kubectl("auth", "can-i", f"--as={ACCOUNT}", "--namespace=edgeshare", *right.split())
    assert asked.stdout.strip() == answer


def test_its_rights_end_with_its_namespace(cluster: ApiServer) -> None:
    asked = cluster.kubectl("auth", "can-i", f"--as={ACCOUNT}", "--namespace=default", "get", f"secrets/{SECRET}")
    assert asked.stdout.strip() == "no"


@pytest.fixture
def run(cluster: ApiServer, render: Render, tmp_path: Path) -> Callable[[], Result]:
    """Does what the container of the CronJob does, with a token of its account."""
    token = done(cluster.kubectl("create", "token", NAME, "--namespace=edgeshare")).stdout.strip()
    settings = yaml.safe_load(cluster.kubeconfig.read_text())
    settings["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(settings))
    started, *words = pod(render(*RENEWED))["containers"][0]["command"]
    assert started == "edgeshare"
    return lambda: CliRunner().invoke(cli, [*words, f"--kubeconfig={path}"])


def test_it_renews_what_an_administrator_made_and_makes_nothing_itself(
    cluster: ApiServer, run: Callable[[], Result]
) -> None:
    told = run()
    assert isinstance(told.exception, Refused)
    text = str(told.exception)
    assert text.startswith(
        f"Secret edgeshare/{SECRET}-ca is not there and cannot be made (make it once as somebody who"
    )
    assert "403" in text
    assert "\n" not in text
    administrator = KubeSecrets(Kube.from_kubeconfig(cluster.kubeconfig), "edgeshare", SECRET)
    hosts = service_hosts("edgeshare-assigner", "edgeshare") | {"10.96.0.7"}
    list(issue(administrator, for_assigner(hosts), datetime.now(UTC) - timedelta(days=300), 365))
    for steps in (["kept", "renewed", "renewed"], ["kept", "kept", "kept"]):
        told = run()
        assert told.exit_code == 0, told.exception
        assert [line.partition(": ")[2].partition(",")[0] for line in told.output.splitlines()] == steps
