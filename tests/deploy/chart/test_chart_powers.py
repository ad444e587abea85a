"""What the chart's containers may do and see: few powers, and paths that are the same in and outside."""

import pytest

from edgeshare.contract.names import RUNTIME_DIR, STATE_DIR
from tests.kit.deploy.objects import Object, Render, only


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
    # What of a pod and which AcceleratorNode, policies say: see test_assignment_rights.py.
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
