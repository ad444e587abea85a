"""The chart's part in CDI: the plugin reaches the folder that its configuration names, and nobody else does."""

import pytest

from tests.kit.deploy.objects import Object, Render


def cdi_folder(objects: list[Object]) -> dict[str, tuple[str, str]]:
    """Container → the folder of CDI specs inside and on the node, where it has one."""
    (daemon_set,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == ("DaemonSet", "edgeshare"))
    pod = daemon_set["spec"]["template"]["spec"]
    on_node = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    return {
        container["name"]: (mount["mountPath"], on_node["cdi"])
        for container in pod["containers"]
        for mount in container["volumeMounts"]
        if mount["name"] == "cdi"
    }


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        ('{"injection": {"devices": "cdi"}}', "/var/run/cdi"),
        ('{"injection": {"devices": "cdi"}, "cdi_dir": "/etc/cdi"}', "/etc/cdi"),
        ('{"configs": {"lab": {"injection": {"devices": "cdi"}}, "edge": {}}}', "/var/run/cdi"),
    ],
)
def test_plugin_alone_has_the_folder_of_cdi_specs_where_it_writes_them(
    render: Render, config: str, folder: str
) -> None:
    assert cdi_folder(render(f"devicePlugin.config={config}")) == {"device-plugin": (folder, folder)}


@pytest.mark.parametrize("config", ["{}", '{"configs": {"lab": {"injection": {"devices": "envvar"}}}}'])
def test_nobody_has_it_without_cdi(render: Render, config: str) -> None:
    assert cdi_folder(render(f"devicePlugin.config={config}")) == {}
