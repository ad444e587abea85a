"""What can be set of the chart's own scheduler, what is refused, and which image it has."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from edgeshare.config_file import read_config
from sharemgr.cluster.config import Choice, Config
from tests.kit.deploy.objects import Render
from tests.kit.deploy.scheduler import ENABLED, configuration, containers

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((*ENABLED, 'scheduler.name="Two Words"'), "scheduler"),
        ((*ENABLED, 'scheduler.name="default-scheduler"'), "scheduler.name: default-scheduler is the cluster's own"),
        ((*ENABLED, "scheduler.replicas=3"), "replicas"),
        ((*ENABLED, "scheduler.percentageOfNodesToScore=101"), "at '/scheduler/percentageOfNodesToScore': maximum"),
        ((*ENABLED, "assigner.metricsPort=10259"), "assigner.metricsPort: 10259 is kube-scheduler's"),
        ((*ENABLED, "assigner.metricsPort=9443"), "assigner.metricsPort: 9443 is the assigner's own"),
        ((*ENABLED, 'assigner.config={"scheduler_lease": {"namespace": "a", "name": "b"}}'), "scheduler_lease"),
    ],
)
def test_wrong_value_is_refused_by_its_name(render: Render, values: tuple[str, ...], said: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(*values)
    assert said in refused.value.stderr


@pytest.mark.parametrize(
    ("image", "version", "of"),
    [
        ("registry.example/kube-scheduler:v1.36.0", "v1.35.9", "1.36"),
        ("registry.example/kube-scheduler:v1.34.2", "v1.36.3-eks-7f9249a", "1.34"),
        ("registry.example:5000/kube-scheduler:1.37.0-rc.1", "v1.36.3", "1.37"),
        (f"kube-scheduler:v1.33.5-eks@sha256:{'0' * 64}", "v1.36.0", "1.33"),
    ],
)
def test_image_of_a_version_that_does_not_go_with_the_cluster_is_refused(
    render: Render, image: str, version: str, of: str
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(f'scheduler.image="{image}"', version=version)
    # Helm leaves out what a distribution adds.
    cluster = version.partition("-")[0]
    assert f"scheduler.image: {image} is kube-scheduler {of}, but the API server is {cluster}" in refused.value.stderr
    assert containers(render(f'scheduler.image="{image}"', "assigner.enabled=true", "assigner.tls.enabled=false"))


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("registry.example/kube-scheduler:v1.36.7", "1.36.0"),
        ("registry.example/kube-scheduler:v1.35.9", "v1.36.3+k3s1"),
        ("registry.example:5000/kube-scheduler:v1.35.0-gke.1348000", "1.35.0"),
        # What says nothing of its version is for whoever names it to know.
        (f"registry.example:1.2.3/kube-scheduler@sha256:{'0' * 64}", "1.36.0"),
        ("registry.example/kube-scheduler:ours", "1.36.0"),
    ],
)
def test_image_of_the_clusters_minor_version_or_the_one_before_is_taken(
    render: Render, image: str, version: str
) -> None:
    assert containers(render(f'scheduler.image="{image}"', version=version))["kube-scheduler"]["image"] == image


@pytest.mark.parametrize(
    ("version", "image"),
    [
        ("1.36.3", "v1.36.3"),
        ("v1.34.2-eks-7f9249a", "v1.34.2"),
        ("v1.33.5+k3s1", "v1.33.5"),
        ("v1.35.0-gke.1348000", "v1.35.0"),
    ],
)
def test_as_shipped_it_is_there_with_the_image_that_kubernetes_publishes_of_the_clusters_version(
    render: Render, version: str, image: str
) -> None:
    shipped = containers(render(version=version))
    assert shipped["kube-scheduler"]["image"] == f"registry.k8s.io/kube-scheduler:{image}"


@pytest.mark.parametrize(
    ("values", "choice"),
    [
        ((), Choice.FILTER),
        (('assigner.config={"policy": "fgd"}',), Choice.FILTER),
        (('assigner.config={"choice": "scores"}',), Choice.SCORES),
        (("assigner.enabled=true", "assigner.tls.enabled=false"), Choice.SCORES),
    ],
)
def test_beside_it_a_bind_finds_the_room_that_was_answered_unless_told_otherwise(
    render: Render, values: tuple[str, ...], choice: Choice, tmp_path: Path
) -> None:
    path = tmp_path / "assigner.yaml"
    path.write_text(configuration(render(*ENABLED, *values), "assigner.yaml"))
    assert read_config(path, Config).choice is choice


def test_of_the_assigners_values_all_hold_but_how_it_is_asked(render: Render) -> None:
    values = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text())["assigner"]
    other = {
        "image": {"tag": "3"},
        "config": {"policy": "fgd"},
        "metricsPort": 9999,
        "resources": {"limits": {"memory": "1Gi"}},
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high",
        "tls": {"enabled": False, "secretName": "another", "clients": ["somebody"]},
    }
    assert other.keys() == values.keys() - {"enabled"}
    for key, value in other.items():
        changes = render(*ENABLED, f"assigner.{key}={json.dumps(value)}") != render(*ENABLED)
        assert changes is (key != "tls"), key
    status = (*ENABLED, "clusterStatus.enabled=true")
    kinds = [each["kind"] for each in render(*status, "assigner.tls.renew=true")]
    assert "CronJob" in kinds


def test_page_on_values_names_every_value_of_it() -> None:
    page = (ROOT / "docs/install/values.md").read_text()
    values = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text())["scheduler"]
    schema = json.loads((ROOT / "deploy/chart/values.schema.json").read_text())
    assert values.keys() == schema["properties"]["scheduler"]["properties"].keys()
    assert {name for name in values if f"`scheduler.{name}`" not in page} == set()
