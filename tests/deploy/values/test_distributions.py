"""Values for distributions of Kubernetes, whose kubelets have their folders elsewhere: what the chart makes of them."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from deviceplugin.config import Config
from edgeshare.cli.doctor.look import KUBELET_DIRS
from edgeshare.config_file import read_config
from tests.kit.deploy.objects import Object, Render

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "deploy/examples").glob("values-*.yaml"))
SOCKETS = "/var/lib/kubelet/device-plugins"


def of(objects: list[Object], kind: str) -> Object:
    """The one of share manager and device plugin."""
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, "edgeshare"))
    return found


def folders(objects: list[Object]) -> tuple[dict[str, str], dict[str, str]]:
    """The node's folders by volume, and where the plugin has them."""
    pod = of(objects, "DaemonSet")["spec"]["template"]["spec"]
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][1]["volumeMounts"]}
    return {each["name"]: each["hostPath"]["path"] for each in pod["volumes"] if "hostPath" in each}, mounts


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_chart_takes_the_values_and_the_plugin_looks_where_they_say(render: Render, path: Path, tmp_path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    objects = render(files=[path])
    on_node, mounted = folders(objects)
    assert on_node["device-plugins"] == values["kubeletDevicePluginsDir"]
    assert on_node["pod-resources"] == mounted["pod-resources"] == f"{values['kubeletRootDir']}/pod-resources"
    config = tmp_path / "deviceplugin.yaml"
    config.write_text(of(objects, "ConfigMap")["data"]["deviceplugin.yaml"])
    read = read_config(config, Config)
    assert read.pod_resources_socket == Path(values["kubeletRootDir"]) / "pod-resources/kubelet.sock"
    # Where a device plugin looks by itself, whatever the node calls it.
    assert mounted["device-plugins"] == str(read.kubelet_dir / "device-plugins") == SOCKETS
    runtime = of(objects, "DaemonSet")["spec"]["template"]["spec"].get("runtimeClassName")
    assert runtime == values.get("runtimeClassName") == values.get("labeller", {}).get("runtimeClassName")


def test_folder_of_device_plugins_is_mounted_where_the_plugin_looks(render: Render) -> None:
    on_node, mounted = folders(render('kubeletDevicePluginsDir="/var/snap/strict/device-plugins"'))
    assert on_node["device-plugins"] == "/var/snap/strict/device-plugins"
    assert mounted["device-plugins"] == SOCKETS
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render('kubeletDevicePluginsDir="device-plugins"')
    assert "at '/kubeletDevicePluginsDir': 'device-plugins' does not match pattern" in refused.value.stderr


def test_kube_schedulers_image_that_nobody_put_onto_a_node_is_fetched(render: Render) -> None:
    for path in EXAMPLES:
        (deployment,) = (each for each in render(files=[path]) if each["kind"] == "Deployment")
        policies = {
            each["name"]: each["imagePullPolicy"] for each in deployment["spec"]["template"]["spec"]["containers"]
        }
        # A tag that is on the node already is not asked for anew.
        assert policies == {"assigner": "IfNotPresent", "kube-scheduler": "IfNotPresent"}, path.name


def test_doctor_looks_at_each_root_folder_that_is_named() -> None:
    named = {yaml.safe_load(path.read_text())["kubeletRootDir"] for path in EXAMPLES}
    assert named <= set(KUBELET_DIRS)


def test_page_on_distributions_names_each_file() -> None:
    assert len(EXAMPLES) == 4
    page = (ROOT / "docs/clusters/index.md").read_text()
    assert set(re.findall(r"`deploy/examples/(values-\w+\.yaml)`", page)) == {path.name for path in EXAMPLES}
