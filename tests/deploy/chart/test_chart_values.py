"""Values of the chart: what they set, and which are refused by their name."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deviceplugin.config import Config as DevicePlugin
from edgeshare.config_file import read_config
from sharemgr.node.config import Config as ShareManager
from tests.kit.deploy.objects import Object, Render, only


def refusal(render: Render, *values: str) -> str:
    """What helm says of values that it refuses."""
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(*values)
    return str(refused.value.stderr)


def test_parts_read_the_configuration_that_is_set(render: Render, tmp_path: Path) -> None:
    objects = render(
        'shareManager.config={"slice_ms": 2.5}',
        'devicePlugin.config={"rescan_s": 7}',
        'kubeletRootDir="/var/lib/k0s/kubelet"',
    )
    for name, content in only(objects, "ConfigMap")["data"].items():
        (tmp_path / name).write_text(content)
    assert read_config(tmp_path / "sharemgr.yaml", ShareManager).slice_ms == 2.5
    plugin = read_config(tmp_path / "deviceplugin.yaml", DevicePlugin)
    assert plugin.rescan_s == 7
    assert plugin.pod_resources_socket == Path("/var/lib/k0s/kubelet/pod-resources/kubelet.sock")


ASSIGNER = ("scheduler.enabled=false", "assigner.enabled=true", "assigner.tls.enabled=false")


@pytest.mark.parametrize(
    ("values", "advertised"),
    [
        ((), "all"),
        (("scheduler.enabled=false",), "placeable"),
        (ASSIGNER, "all"),
        (("scheduler.enabled=false", 'devicePlugin.config={"advertise": "all"}'), "all"),
        ((*ASSIGNER, 'devicePlugin.config={"advertise": "all"}'), "all"),
    ],
)
def test_where_nothing_places_pods_by_gpu_nodes_tell_what_one_container_can_be_given(
    render: Render, tmp_path: Path, values: tuple[str, ...], advertised: str
) -> None:
    (tmp_path / "deviceplugin.yaml").write_text(only(render(*values), "ConfigMap")["data"]["deviceplugin.yaml"])
    assert read_config(tmp_path / "deviceplugin.yaml", DevicePlugin).advertise == advertised


@pytest.mark.parametrize("config", ['{"advertise": "placeable"}', '{"configs": {"lab": {"advertise": "placeable"}}}'])
def test_what_would_hide_the_gpus_that_are_chosen_is_refused(render: Render, config: str) -> None:
    assert "placeable would hide GPUs that the assigner chooses" in refusal(render, f"devicePlugin.config={config}")
    render("scheduler.enabled=false", f"devicePlugin.config={config}")


def test_plugin_looks_for_device_files_where_the_nodes_are(render: Render) -> None:
    def plugins(*values: str) -> tuple[dict[str, Any], Object]:
        objects = render(*values)
        config: dict[str, Any] = yaml.safe_load(only(objects, "ConfigMap")["data"]["deviceplugin.yaml"])
        container: Object = only(objects, "DaemonSet")["spec"]["template"]["spec"]["containers"][1]
        return config, next(mount for mount in container["volumeMounts"] if mount["name"] == "dev")

    config, mount = plugins()
    assert mount == {"name": "dev", "mountPath": config["node_dev"], "readOnly": True}
    config, _ = plugins('devicePlugin.config={"node_dev": "/elsewhere"}')
    assert config["node_dev"] == "/elsewhere"


@pytest.mark.parametrize(
    ("value", "file", "model", "index"),
    [
        ("shareManager.metricsPort", "sharemgr.yaml", ShareManager, 0),
        ("devicePlugin.metricsPort", "deviceplugin.yaml", DevicePlugin, 1),
    ],
)
def test_metrics_are_served_where_the_pod_says(
    render: Render, tmp_path: Path, value: str, file: str, model: type[ShareManager | DevicePlugin], index: int
) -> None:
    for port, address in ((9999, ":9999"), (0, "")):
        objects = render(f"{value}={port}")
        config = tmp_path / file
        config.write_text(only(objects, "ConfigMap")["data"][file])
        assert read_config(config, model).metrics_address == address
        template = only(objects, "DaemonSet")["spec"]["template"]
        ports = template["spec"]["containers"][index].get("ports", [])
        assert [each["containerPort"] for each in ports] == ([port] if port else [])


def test_additions_reach_both_containers(render: Render) -> None:
    objects = render(
        'extraEnv=[{"name": "LD_LIBRARY_PATH", "value": "/simgpu/lib"}]',
        'extraVolumes=[{"name": "simgpu", "hostPath": {"path": "/simgpu"}}]',
        'extraVolumeMounts=[{"name": "simgpu", "mountPath": "/simgpu"}]',
    )
    pod = only(objects, "DaemonSet")["spec"]["template"]["spec"]
    assert {"name": "simgpu", "hostPath": {"path": "/simgpu"}} in pod["volumes"]
    for container in pod["containers"]:
        assert {"name": "LD_LIBRARY_PATH", "value": "/simgpu/lib"} in container["env"]
        assert {"name": "simgpu", "mountPath": "/simgpu"} in container["volumeMounts"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('imagePullPolicy="Never"', "at '': additional properties 'imagePullPolicy' not allowed"),
        ('image={"name": "edgeshare"}', "at '/image': additional properties 'name' not allowed"),
        ("image.tag=1.0", "at '/image/tag': got number, want string"),
        (
            'image.pullPolicy="never"',
            "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
        ),
        (
            "shareManager.config.slice=5",
            "at '/shareManager/config': additional properties 'slice' not allowed",
        ),
        ("shareManager.config.slice_ms=0", "at '/shareManager/config/slice_ms': minimum: got 0, want 0.5"),
        (
            'devicePlugin.config.kubelet_dir="/k"',
            "at '/devicePlugin/config': additional properties 'kubelet_dir' not allowed",
        ),
        ('kubeletRootDir="kubelet"', "at '/kubeletRootDir': 'kubelet' does not match pattern"),
        ('stateDir="state"', "at '/stateDir': 'state' does not match pattern"),
        ('nodeSelector={"gpu": true}', "at '/nodeSelector/gpu': got boolean, want string"),
        ('policies.pods.enabled="no"', "at '/policies/pods/enabled': got string, want boolean"),
        ("policies.pods.schedulerNames=[]", "at '/policies/pods/schedulerNames': minItems: got 0, want 1"),
        ('tolerations="all"', "at '/tolerations': got string, want array"),
    ],
)
def test_wrong_value_is_refused_by_its_name(render: Render, value: str, said: str) -> None:
    assert said in refusal(render, value)


SURGE = 'updateStrategy.rollingUpdate={"maxSurge": 1, "maxUnavailable": 0}'


def test_new_pod_beside_an_old_one_is_ready_by_what_it_answers_itself(render: Render) -> None:
    """The sockets are the node's: the old pod answers there."""
    daemon_set = only(render(SURGE), "DaemonSet")
    assert daemon_set["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    for container in daemon_set["spec"]["template"]["spec"]["containers"]:
        (port,) = container["ports"]
        assert "hostPort" not in port
        assert container["startupProbe"]["httpGet"]["port"] == port["name"]
    (manager, plugin) = daemon_set["spec"]["template"]["spec"]["containers"]
    assert manager["startupProbe"]["httpGet"]["path"] == plugin["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize("surge", ["0", '"0%"', "null"])
def test_without_a_surge_the_manager_is_asked_at_its_socket(render: Render, surge: str) -> None:
    pod = only(render(f"updateStrategy.rollingUpdate.maxSurge={surge}"), "DaemonSet")["spec"]["template"]["spec"]
    assert "exec" in pod["containers"][0]["startupProbe"]


@pytest.mark.parametrize("part", ["shareManager", "devicePlugin"])
def test_surge_without_a_port_is_refused(render: Render, part: str) -> None:
    assert "maxSurge needs shareManager.metricsPort and devicePlugin.metricsPort" in refusal(
        render, SURGE, f"{part}.metricsPort=0"
    )
