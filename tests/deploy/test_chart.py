"""What the chart renders to: few powers, paths that are the same in and outside, values that are checked."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import edgeshare
from deviceplugin.config import Config as DevicePlugin
from edgeshare.cli import cli
from edgeshare.config_file import read_config
from edgeshare.contract.accelerator_kind import GPU
from edgeshare.contract.names import ALLOCATIONS_SOCKET, RUNTIME_DIR, STATE_DIR
from sharemgr.node.config import Config as ShareManager

DEPLOY = Path(__file__).parent.parent.parent / "deploy"

Object = dict[str, Any]
Render = Callable[..., list[Object]]


def only(objects: list[Object], kind: str, name: str = "edgeshare") -> Object:
    """The one object of a kind and a name: with nothing else named, of share manager and device plugin."""
    (found,) = (each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


@pytest.fixture
def pod(render: Render) -> Object:
    """The DaemonSet's pod, with nothing set."""
    spec: Object = only(render(), "DaemonSet")["spec"]["template"]["spec"]
    return spec


def refusal(render: Render, *values: str) -> str:
    """What helm says of values that it refuses."""
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(*values)
    return str(refused.value.stderr)


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


@pytest.mark.parametrize("state_dir", [STATE_DIR, "/home/kubernetes/edgeshare"])
def test_folder_of_the_host_has_the_same_path_in_the_container(render: Render, state_dir: str) -> None:
    """The kubelet is handed paths below them, and mounts these from the host."""
    objects = render('kubeletRootDir="/var/lib/k0s/kubelet"', f'stateDir="{state_dir}"')
    pod = only(objects, "DaemonSet")["spec"]["template"]["spec"]
    assert all(f"--state-dir={state_dir}" in container["command"] for container in pod["containers"])
    folders = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    mounts = [mount for container in pod["containers"] for mount in container["volumeMounts"]]
    mounted = {mount["name"]: mount["mountPath"] for mount in mounts if mount["name"] in folders}
    # Not handed to anybody, and a container has a folder of that name already.
    assert (folders.pop("dev"), mounted.pop("dev")) == ("/dev", "/node/dev")
    assert mounted == folders
    assert set(folders.values()) == {
        RUNTIME_DIR,
        state_dir,
        "/var/lib/kubelet/device-plugins",
        "/var/lib/k0s/kubelet/pod-resources",
    }


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


def test_manager_sees_nothing_of_the_kubelet(pod: Object) -> None:
    manager = pod["containers"][0]
    writable = {mount["mountPath"] for mount in manager["volumeMounts"] if not mount.get("readOnly")}
    assert {mount["name"] for mount in manager["volumeMounts"]} == {"config", "runtime", "state", "api-access"}
    assert writable == {RUNTIME_DIR, STATE_DIR}


def test_both_may_talk_to_the_api_server_and_what_is_put_beside_them_may_not(pod: Object) -> None:
    assert pod["automountServiceAccountToken"] is False
    having = [
        container["name"]
        for container in pod["containers"]
        if any(mount["name"] == "api-access" for mount in container["volumeMounts"])
    ]
    assert having == ["share-manager", "device-plugin"]


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


def test_containers_have_no_power_beyond_being_root(pod: Object) -> None:
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    assert "hostNetwork" not in pod
    assert "hostIPC" not in pod


def test_manager_keeps_the_capabilities_that_one_names(render: Render) -> None:
    objects = render('shareManager.capabilities=["SYS_RESOURCE"]')
    manager, plugin = only(objects, "DaemonSet")["spec"]["template"]["spec"]["containers"]
    assert manager["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_RESOURCE"]}
    assert plugin["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_service_account_may_write_what_the_plugin_writes_and_nothing_else(render: Render) -> None:
    rules = only(render(), "ClusterRole")["rules"]
    rights = {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    writing = {right for right in rights if right[2] not in ("get", "list", "watch")}
    # What of a pod and which AcceleratorNode, policies say: see test_assignment.py.
    assert writing == {
        ("", "nodes/status", "patch"),
        ("", "events", "create"),
        ("", "pods", "patch"),
        ("share.edge", "assignments", "set"),
        ("share.edge", "acceleratornodes", "create"),
        ("share.edge", "acceleratornodes", "patch"),
    }
    assert {resource for _, resource, _ in rights - writing} == {"pods", "nodes", "acceleratornodes"}


def test_memory_is_bounded_and_cpu_is_not(pod: Object) -> None:
    """Throttled, the manager would keep everybody waiting for a slice, and the plugin every pod's start."""
    for container in pod["containers"]:
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}


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


def test_objects_of_another_release_have_other_names(helm: Path) -> None:
    def identities(release: str) -> set[tuple[str, str]]:
        words = [helm, "template", release, DEPLOY / "chart", "--kube-version=1.30.0"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return {(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(done.stdout) if each}

    assert identities("one") & identities("two") == set()


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
