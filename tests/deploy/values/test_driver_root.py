"""Where the node's driver lies: seen by all that ask it, and by nothing else."""

import subprocess

import pytest

from edgeshare.inventory.nvml.library import DRIVER_ROOT
from tests.kit.deploy.objects import Object, Render

GKE = "/home/kubernetes/bin/nvidia"


def containers(objects: list[Object]) -> dict[str, tuple[Object, Object]]:
    """Name of each container → itself and its pod."""
    pods = [each["spec"]["template"]["spec"] for each in objects if each["kind"] in ("DaemonSet", "Deployment")]
    return {container["name"]: (container, pod) for pod in pods for container in pod["containers"]}


def test_its_folder_is_read_by_share_manager_device_plugin_and_labeller_alone(render: Render) -> None:
    seen = set()
    for name, (container, pod) in containers(render(f'driverRoot="{GKE}"')).items():
        volumes = [each for each in pod["volumes"] if each.get("hostPath", {}).get("path") == GKE]
        mounts = [each for each in container["volumeMounts"] if each["name"] in {volume["name"] for volume in volumes}]
        named = [each["value"] for each in container.get("env", []) if each["name"] == DRIVER_ROOT]
        assert [each["mountPath"] for each in mounts] == named
        for mount in mounts:
            seen.add(name)
            # A driver's container mounts it after these pods have begun.
            assert (mount["readOnly"], mount["mountPropagation"]) == (True, "HostToContainer")
            assert volumes[0]["hostPath"]["type"] == "DirectoryOrCreate"
    assert seen == {"share-manager", "device-plugin", "labeller"}


def test_without_one_nothing_is_mounted_and_no_variable_says_so(render: Render) -> None:
    for container, pod in containers(render()).values():
        assert DRIVER_ROOT not in {each["name"] for each in container.get("env", [])}
        assert "driver-root" not in {each["name"] for each in pod["volumes"]}


def test_it_goes_with_volumes_of_ones_own(render: Render) -> None:
    objects = render(
        f'driverRoot="{GKE}"',
        'extraVolumes=[{"name": "more", "hostPath": {"path": "/more"}}]',
        'extraVolumeMounts=[{"name": "more", "mountPath": "/more"}]',
    )
    for name in ("share-manager", "device-plugin", "labeller"):
        container, pod = containers(objects)[name]
        assert {"/driver", "/more"} <= {each["mountPath"] for each in container["volumeMounts"]}
        assert {"driver-root", "more"} <= {each["name"] for each in pod["volumes"]}


@pytest.mark.parametrize("path", ["run/nvidia/driver", "/run/nvidia/driver/", "/"])
def test_what_is_no_folder_below_the_nodes_root_is_refused(render: Render, path: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(f'driverRoot="{path}"')
    assert "driverRoot" in refused.value.stderr
