"""A release that an earlier chart made is upgraded at a real API server, as the page on upgrading says it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.kit.apiserver.api_server import ApiServer, api_server, done
from tests.kit.deploy.manifests import CHART
from tests.kit.deploy.objects import Object
from tests.kit.programs.kinds import PROMETHEUS_OPERATOR, definitions

RECORDED = Path(__file__).parent / "of_releases"
VERSIONS = sorted(path.name.removesuffix("-set.yaml") for path in RECORDED.glob("*-set.yaml"))
NAMESPACE = "--namespace=edgeshare"
MONITORING = "monitoring.coreos.com"
WORKLOADS = "daemonsets,deployments,cronjobs"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ApiServer]:
    """An API server with all kinds that the recorded values ask for, and without edgeshare."""
    with api_server(tmp_path / "api-server") as server:
        server.define(definitions(PROMETHEUS_OPERATOR))
        yield server


def chart_of(version: str, folder: Path) -> Path:
    """What is recorded of a release's chart, as a chart."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(f"apiVersion: v2\nname: edgeshare\nversion: {version}\n")
    shutil.copy(RECORDED / f"{version}-shipped.yaml", folder / "values.yaml")
    shutil.copy(RECORDED / f"{version}-objects.yaml", folder / "templates/objects.yaml")
    return folder


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_release_was_given_is_kept_and_all_that_this_chart_makes_of_it_is_taken(
    cluster: ApiServer, helm: Path, tmp_path: Path, version: str
) -> None:
    def run(*words: str | Path) -> None:
        where = (NAMESPACE, f"--kubeconfig={cluster.kubeconfig}")
        process = subprocess.run([helm, *words, *where], capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr

    def workloads() -> dict[str, Object]:
        told = done(cluster.kubectl("get", WORKLOADS, NAMESPACE, "--output=json")).stdout
        return {f"{each['kind']}/{each['metadata']['name']}": each for each in json.loads(told)["items"]}

    given = RECORDED / f"{version}-set.yaml"
    run("install", "edgeshare", chart_of(version, tmp_path / "chart"), "--create-namespace", f"--values={given}")
    before = workloads()

    cluster.define(CHART / "crds")
    run("upgrade", "edgeshare", CHART, "--reset-then-reuse-values")

    after = workloads()
    values = yaml.safe_load(given.read_text())
    assert before.keys() <= after.keys()
    for name in before:
        assert after[name]["metadata"]["uid"] == before[name]["metadata"]["uid"], name
        images = {each["image"] for each in after[name]["spec"]["template"]["spec"]["containers"]}
        assert images == {f"{values['image']['repository']}:{values['image']['tag']}"}
    monitors = done(cluster.kubectl("get", "podmonitors,prometheusrules", NAMESPACE, "--output=name")).stdout
    assert f"podmonitor.{MONITORING}/edgeshare" in monitors.split()
    # Once more, with nothing given anew: nothing is left that only a first upgrade would do.
    run("upgrade", "edgeshare", CHART, "--reset-then-reuse-values")
    assert {name: each["metadata"]["generation"] for name, each in workloads().items()} == {
        name: each["metadata"]["generation"] for name, each in after.items()
    }
