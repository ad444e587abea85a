"""What the chart renders to: its version, its commands and probes, and the manifest that is made of it."""

import json
import subprocess
import sys
from pathlib import Path

import yaml
from click.testing import CliRunner

import edgeshare
from edgeshare.cli import cli
from edgeshare.config_file import read_config
from edgeshare.contract.accelerator_kind import GPU
from edgeshare.contract.names import ALLOCATIONS_SOCKET, RUNTIME_DIR
from sharemgr.node.config import Config as ShareManager
from tests.kit.deploy.objects import Object, Render, only

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_helm_finds_no_fault(helm: Path) -> None:
    done = subprocess.run(
        [helm, "lint", "--strict", "--kube-version=1.30.0", DEPLOY / "chart"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


def test_what_is_derived_is_current() -> None:
    done = subprocess.run(
        [sys.executable, DEPLOY / "render.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_chart_installs_the_version_of_this_tree(pod: Object) -> None:
    assert {container["image"] for container in pod["containers"]} == {f"edgeshare:{edgeshare.__version__}"}


def test_parts_are_started_with_options_that_they_know(pod: Object) -> None:
    for container in pod["containers"]:
        program, *words = container["command"]
        assert program == "edgeshare"
        # Everything is parsed before --help is answered, an option that is not known included.
        done = CliRunner().invoke(cli, [*words, "--help"])
        assert done.exit_code == 0, done.output


def test_probes_ask_where_the_parts_serve(pod: Object, render: Render) -> None:
    manager, plugin = pod["containers"]
    assert manager["startupProbe"]["exec"] == manager["livenessProbe"]["exec"]
    assert manager["livenessProbe"]["exec"]["command"][-2:] == [RUNTIME_DIR, ALLOCATIONS_SOCKET]
    (port,) = plugin["ports"]
    paths = {"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    for probe, path in paths.items():
        assert plugin[probe]["httpGet"] == {"path": path, "port": port["name"]}
    # With no port for them, the plugin's are calls at its socket.
    silent = only(render("devicePlugin.metricsPort=0"), "DaemonSet")["spec"]["template"]["spec"]["containers"][1]
    assert silent["startupProbe"]["exec"] == silent["livenessProbe"]["exec"]
    assert silent["livenessProbe"]["exec"]["command"][-2:] == [
        "/var/lib/kubelet/device-plugins",
        f"edgeshare-{GPU.prefix}-*.sock",
    ]
    assert "readinessProbe" not in silent


def test_changed_configuration_starts_the_pods_anew_where_a_part_reads_it_once(render: Render) -> None:
    def template(*values: str) -> Object:
        pod: Object = only(render(*values), "DaemonSet")["spec"]["template"]
        return pod

    assert template() == template()
    assert template() != template('shareManager.config={"slice_ms": 2.5}')
    # The plugin takes it in as it runs.
    assert template() == template('devicePlugin.config={"rescan_s": 7, "configs": {"lab": {"rescan_s": 1}}}')


def test_prometheus_finds_the_ports_of_both_and_is_not_sent_to_one(render: Render) -> None:
    def annotations(*values: str) -> Object:
        found: Object = only(render(*values), "DaemonSet")["spec"]["template"]["metadata"]["annotations"]
        return found

    containers = only(render(), "DaemonSet")["spec"]["template"]["spec"]["containers"]
    names = [port["name"] for container in containers for port in container["ports"]]
    assert len(names) == len(set(names)) == 2
    assert annotations()["prometheus.io/scrape"] == "true"
    # The usual discovery would go to that port alone.
    assert "prometheus.io/port" not in annotations()
    assert "prometheus.io/scrape" not in annotations("shareManager.metricsPort=0", "devicePlugin.metricsPort=0")


def test_node_without_hardware_is_waited_on_and_the_manager_knows_its_node(render: Render, tmp_path: Path) -> None:
    objects = render()
    config = tmp_path / "sharemgr.yaml"
    config.write_text(only(objects, "ConfigMap")["data"]["sharemgr.yaml"])
    assert read_config(config, ShareManager).wait_for_driver
    manager = only(objects, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
    (name,) = (each for each in manager["env"] if each["name"] == "NODE_NAME")
    assert name["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_objects_of_another_release_have_other_names(helm: Path) -> None:
    def identities(release: str) -> set[tuple[str, str]]:
        words = [helm, "template", release, DEPLOY / "chart", "--kube-version=1.30.0"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return {(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(done.stdout) if each}

    assert identities("one") & identities("two") == set()


def test_cluster_without_admission_policies_is_refused(helm: Path) -> None:
    done = subprocess.run(
        [helm, "template", "edgeshare", DEPLOY / "chart", "--kube-version=1.29.0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "requires kubeVersion: >=1.30.0-0" in done.stderr


def test_manifest_is_the_chart_but_for_its_scheduler(render: Render, manifest: Path) -> None:
    kind, namespace, *rest = [each for each in yaml.safe_load_all(manifest.read_text()) if each]
    assert kind == yaml.safe_load((DEPLOY / "chart/crds/acceleratornodes.yaml").read_text())
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", "edgeshare")
    # What Helm runs as it uninstalls must not be run by whoever applies the manifest.
    bare = render("scheduler.enabled=false")
    lasting = [each for each in bare if "helm.sh/hook" not in each["metadata"].get("annotations", {})]
    assert json.dumps(rest, sort_keys=True) == json.dumps(lasting, sort_keys=True)
