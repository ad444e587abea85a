"""The cluster's status in the chart: off as shipped; where it is on, each part is told what the other goes by."""

import json
import subprocess
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic import BaseModel

from edgeshare.config_file import read_config
from edgeshare.contract.names import STATUS_CLIENT_NAME
from sharemgr.cluster.config import Config as ClusterPart
from sharemgr.cluster.issuing.kube_secrets import SUFFIXES
from sharemgr.cluster.issuing.renewal import STATUS_LEAVES, Name
from sharemgr.node.config import Config as Manager
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.deploy.objects import Object, Render

Model = TypeVar("Model", bound=BaseModel)

ON = "clusterStatus.enabled=true"
PAGE = "clusterStatus.page=true"
ASSIGNER = ("assigner.enabled=true", 'assigner.tls.secretName="edgeshare-assigner-tls"', "assigner.tls.renew=true")
BESIDE = ("scheduler.enabled=true", 'scheduler.image="registry.example/kube-scheduler:v1.30.3"')
BOTH = pytest.mark.parametrize("values", [(*ASSIGNER, ON), (*BESIDE, ON)], ids=["assigner", "scheduler"])
WITH_PAGE = pytest.mark.parametrize(
    "values", [(*ASSIGNER, ON, PAGE), (*BESIDE, ON, PAGE)], ids=["assigner", "scheduler"]
)


def one(objects: list[Object], kind: str, name: str) -> Object:
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def config(objects: list[Object], name: str, key: str, model: type[Model], folder: Path) -> Model:
    """What a container is given to read."""
    path = folder / key
    path.write_text(one(objects, "ConfigMap", name)["data"][key])
    return read_config(path, model)


def mounted(pod: Object, container: str) -> dict[str, str]:
    """By folder, the Secret that a container has there."""
    secrets = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    (own,) = [each for each in pod["containers"] if each["name"] == container]
    mounts = {each["mountPath"]: each["name"] for each in own["volumeMounts"]}
    return {path: secrets[name] for path, name in mounts.items() if name in secrets}


def test_nothing_of_it_is_there_as_shipped(render: Render) -> None:
    said = json.dumps(render(*ASSIGNER))
    for text in ("remote_status", "tokenreviews", "subjectaccessreviews", "edgeshare-managers", "9467", "9468"):
        assert text not in said
    for text in ("page_address", "9469"):
        assert text not in json.dumps(render(*ASSIGNER, ON))


@BOTH
def test_each_side_finds_the_other_and_has_what_it_shows_and_goes_by(
    render: Render, values: tuple[str, ...], tmp_path: Path
) -> None:
    objects = render(*values)
    part = config(objects, "edgeshare-assigner", "assigner.yaml", ClusterPart, tmp_path).status
    manager = config(objects, "edgeshare", "sharemgr.yaml", Manager, tmp_path).remote_status
    assert part is not None
    assert manager is not None
    assert manager.clients == (STATUS_CLIENT_NAME,)
    service = one(objects, "Service", part.managers.service.name)
    assert (service["metadata"]["namespace"], service["spec"]["clusterIP"]) == (part.managers.service.namespace, "None")
    daemons = one(objects, "DaemonSet", "edgeshare")["spec"]["template"]
    assert service["spec"]["selector"].items() <= daemons["metadata"]["labels"].items()
    assert manager.address == f":{service['spec']['ports'][0]['port']}"
    asked = one(objects, "Service", "edgeshare-status")["spec"]
    replicas = one(objects, "Deployment", "edgeshare-assigner")["spec"]["template"]
    assert asked["selector"].items() <= replicas["metadata"]["labels"].items()
    assert part.address == f":{asked['ports'][0]['port']}"

    secrets = {name: f"edgeshare-assigner-tls{SUFFIXES[name]}" for name in STATUS_LEAVES}
    of_part, of_manager = mounted(replicas["spec"], "assigner"), mounted(daemons["spec"], "share-manager")
    assert of_manager == {str(manager.certificate.parent): secrets[Name.MANAGER]}
    assert of_part[str(part.certificate.parent)] == secrets[Name.STATUS_SERVER]
    assert of_part[str(part.managers.certificate.parent)] == secrets[Name.STATUS_CLIENT]
    shown = (part.certificate, part.private_key, part.managers.authority, manager.private_key, manager.authority)
    assert [path.name for path in shown] == ["tls.crt", "tls.key", "ca.crt", "tls.key", "ca.crt"]


@BOTH
def test_managers_are_reached_by_the_cluster_part_alone(render: Render, values: tuple[str, ...]) -> None:
    objects = render(*values)
    (status, _) = one(objects, "NetworkPolicy", "edgeshare")["spec"]["ingress"]
    assert status["ports"] == [{"protocol": "TCP", "port": 9468}]
    (peer,) = status["from"]
    assert peer.keys() == {"podSelector"}
    replicas = one(objects, "Deployment", "edgeshare-assigner")["spec"]["template"]["metadata"]["labels"]
    assert peer["podSelector"]["matchLabels"].items() <= replicas.items()
    assert "edgeshare-assigner" in peer["podSelector"]["matchLabels"].values()


def test_who_reaches_the_status_can_be_named(render: Render) -> None:
    def to_status(*values: str) -> list[Object]:
        rules = one(render(*ASSIGNER, ON, *values), "NetworkPolicy", "edgeshare-assigner")["spec"]["ingress"]
        return [rule for rule in rules if {"protocol": "TCP", "port": 9467} in rule["ports"]]

    assert to_status() == [{"ports": [{"protocol": "TCP", "port": 9467}]}]
    peers = [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]
    (rule,) = to_status(f"networkPolicies.statusFrom={json.dumps(peers)}")
    assert rule["from"] == peers
    assert to_status("networkPolicies.statusFrom=[]") == []


@BOTH
def test_the_page_is_where_the_service_leads_to_for_who_reaches_the_status(
    render: Render, values: tuple[str, ...], tmp_path: Path
) -> None:
    objects = render(*values, PAGE)
    part = config(objects, "edgeshare-assigner", "assigner.yaml", ClusterPart, tmp_path).status
    assert part is not None
    ports = {each["name"]: each["port"] for each in one(objects, "Service", "edgeshare-status")["spec"]["ports"]}
    assert (part.address, part.page_address) == (f":{ports['status']}", f":{ports['page']}")
    pod = one(objects, "Deployment", "edgeshare-assigner")["spec"]["template"]["spec"]
    (own,) = [each for each in pod["containers"] if each["name"] == "assigner"]
    assert {"name": "page", "containerPort": ports["page"]} in own["ports"]
    peers = [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]
    objects = render(*values, PAGE, f"networkPolicies.statusFrom={json.dumps(peers)}")
    rules = one(objects, "NetworkPolicy", "edgeshare-assigner")["spec"]["ingress"]
    (rule,) = [rule for rule in rules if {"protocol": "TCP", "port": ports["page"]} in rule["ports"]]
    assert rule["from"] == peers


@pytest.mark.parametrize("values", [ASSIGNER, ("assigner.tls.renew=true",)], ids=["extender", "scheduler of its own"])
def test_its_certificates_are_renewed(render: Render, values: tuple[str, ...]) -> None:
    objects = render(*values, ON)
    pod = one(objects, "CronJob", "edgeshare-certificates")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert "--status" in pod["containers"][0]["command"]
    rules = one(objects, "Role", "edgeshare-certificates")["rules"]
    named = {name for rule in rules for name in rule["resourceNames"]}
    assert named == {f"edgeshare-assigner-tls{suffix}" for suffix in SUFFIXES.values()}


def test_certificates_of_another_command_are_not_renewed_with_the_assigners(render: Render) -> None:
    others = render(*ASSIGNER, ON, 'clusterStatus.secretName="others"')
    assert "--status" not in json.dumps(one(others, "CronJob", "edgeshare-certificates"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((ON, "scheduler.enabled=false"), "set assigner.enabled or scheduler.enabled, too"),
        ((*ASSIGNER, ON, "assigner.metricsPort=9467"), "assigner.metricsPort: 9467 is the cluster's status"),
        ((*ASSIGNER, ON, PAGE, "assigner.metricsPort=9469"), "assigner.metricsPort: 9469 is the cluster's page"),
        ((*ASSIGNER, PAGE), "clusterStatus.page: it shows the cluster's status: set clusterStatus.enabled, too"),
        ((*ASSIGNER, ON, "shareManager.metricsPort=9468"), "9468 is where the same pod tells its status"),
        ((*ASSIGNER, ON, "devicePlugin.metricsPort=9468"), "9468 is where the same pod tells its status"),
        ((*ASSIGNER, ON, 'clusterStatus.secretName=""'), "clusterStatus/secretName"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(render: Render, values: tuple[str, ...], said: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as told:
        render(*values)
    assert said in told.value.stderr.replace("clusterStatus.secretName", "clusterStatus/secretName")


@WITH_PAGE
def test_api_server_takes_all_of_it(installed: ApiServer, render: Render, values: tuple[str, ...]) -> None:
    everything = {"apiVersion": "v1", "kind": "List", "items": render(*values)}
    words = ("apply", "--dry-run=server", "--validate=strict", "-f", "-")
    done(installed.kubectl(*words, stdin=json.dumps(everything)))
