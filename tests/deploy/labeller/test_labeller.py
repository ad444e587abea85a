"""The chart's labeller: an ordinary user with the node's files read only, what it reads and where it runs."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from edgeshare.cli import cli
from edgeshare.config_file import read_config
from labeller.config import Config
from tests.kit.apiserver.api_server import ApiServer
from tests.kit.deploy.objects import UNPRIVILEGED, Object, Render, only

ROOT = Path(__file__).parents[3]
NAME = "edgeshare-labeller"
REMOVAL = "edgeshare-removal"


def pod(objects: list[Object], kind: str = "DaemonSet", name: str = NAME) -> Object:
    spec: Object = only(objects, kind, name)["spec"]["template"]["spec"]
    return spec


def rights(rules: list[Object]) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def test_it_is_an_ordinary_user_with_no_power_who_writes_nothing_on_the_node(render: Render) -> None:
    for spec in (pod(render()), pod(render(), "Job", REMOVAL)):
        container = spec["containers"][0]
        assert container["securityContext"] == UNPRIVILEGED
        assert all(mount["readOnly"] for mount in container.get("volumeMounts", ()))
        assert not {"hostPID", "hostNetwork", "hostIPC"} & spec.keys()
    root = pod(render("labeller.user=0"))["containers"][0]["securityContext"]
    assert (root["runAsUser"], "runAsNonRoot" in root) == (0, False)


@pytest.mark.parametrize(
    ("user", "paths"), [(65532, ("/sys", "/proc/meminfo", "/etc")), (0, ("/sys", "/proc/meminfo"))]
)
def test_it_sees_of_the_node_what_its_sources_read_below_its_root_and_root_no_keys(
    render: Render, tmp_path: Path, user: int, paths: tuple[str, ...]
) -> None:
    objects = render(f"labeller.user={user}")
    on_node = {volume["name"]: volume["hostPath"]["path"] for volume in pod(objects)["volumes"] if "hostPath" in volume}
    mounts = pod(objects)["containers"][0]["volumeMounts"]
    config = tmp_path / "labeller.yaml"
    config.write_text(only(objects, "ConfigMap", NAME)["data"]["labeller.yaml"])
    root = str(read_config(config, Config).root)
    seen = {mount["mountPath"]: on_node[mount["name"]] for mount in mounts if mount["name"] in on_node}
    assert seen == {f"{root}{path}": path for path in paths}
    assert set(on_node.values()) == set(paths)


@pytest.mark.parametrize(
    ("extra", "left"),
    [
        ("/host/sys", {"/host/proc/meminfo", "/host/etc"}),
        ("/host/sys/", {"/host/proc/meminfo", "/host/etc"}),
        ("/host/proc", {"/host/sys", "/host/etc"}),
        ("/host", set()),
        ("/host/s", {"/host/sys", "/host/proc/meminfo", "/host/etc"}),
        ("/host/sys/class", {"/host/sys", "/host/proc/meminfo", "/host/etc"}),
    ],
)
def test_a_mount_of_ones_own_is_seen_in_place_of_its(render: Render, extra: str, left: set[str]) -> None:
    mount = {"name": "tree", "mountPath": extra}
    volume = {"name": "tree", "hostPath": {"path": "/tree"}}
    spec = pod(render(f"extraVolumes={json.dumps([volume])}", f"extraVolumeMounts={json.dumps([mount])}"))
    (container,) = spec["containers"]
    on_node = {each["name"] for each in spec["volumes"] if "hostPath" in each}
    seen = {each["mountPath"] for each in container["volumeMounts"] if each["name"] in on_node}
    assert seen == left | {extra}
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in spec["volumes"]}


def test_it_runs_on_and_reads_the_configuration_that_is_set(render: Render, tmp_path: Path) -> None:
    def config(*values: str) -> Config:
        path = tmp_path / "labeller.yaml"
        path.write_text(only(render(*values), "ConfigMap", NAME)["data"]["labeller.yaml"])
        return read_config(path, Config)

    assert config().interval_s == 300
    changed = config('labeller.config={"interval_s": 60, "legacy_l4t": true, "output": "nodefeature"}')
    assert (changed.interval_s, changed.legacy_l4t, changed.output) == (60, True, "nodefeature")
    (container,) = pod(render())["containers"]
    program, *words = container["command"]
    assert program == "edgeshare"
    assert CliRunner().invoke(cli, [*words, "--help"]).exit_code == 0
    names = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"] if "valueFrom" in each
    }
    assert names == {"NODE_NAME": "spec.nodeName", "POD_NAMESPACE": "metadata.namespace"}


def test_use_is_watched_where_a_port_is_given(render: Render, tmp_path: Path) -> None:
    def container(*values: str) -> tuple[Object, Config]:
        objects = render(*values)
        path = tmp_path / "labeller.yaml"
        path.write_text(only(objects, "ConfigMap", NAME)["data"]["labeller.yaml"])
        return pod(objects)["containers"][0], read_config(path, Config)

    without, config = container()
    assert ("--watch-usage" in without["command"], "ports" in without, config.metrics_address) == (False, False, "")
    watching, config = container("labeller.metricsPort=9466")
    assert watching["command"][-1] == "--watch-usage"
    assert [port["containerPort"] for port in watching["ports"]] == [9466]
    assert config.metrics_address == ":9466"
    mounts = {mount["mountPath"]: mount["readOnly"] for mount in watching["volumeMounts"]}
    assert mounts[f"{config.root}{config.usage.tegrastats.parent}"]


def test_changed_configuration_starts_its_pods_anew_and_no_others(render: Render) -> None:
    def templates(*values: str) -> tuple[Object, Object]:
        objects = render(*values)
        return tuple(only(objects, "DaemonSet", name)["spec"]["template"] for name in (NAME, "edgeshare"))

    before, after = templates(), templates('labeller.config={"legacy_l4t": true}')
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_its_pods_are_on_every_node_and_no_other_selector_finds_them(render: Render) -> None:
    objects = render()
    assert pod(objects)["tolerations"] == [{"operator": "Exists"}]
    assert pod(objects)["nodeSelector"] == {"kubernetes.io/os": "linux"}
    others = only(objects, "DaemonSet")["spec"]["selector"]["matchLabels"]
    for kind, name in (("DaemonSet", NAME), ("Job", REMOVAL)):
        labels = only(objects, kind, name)["spec"]["template"]["metadata"]["labels"]
        assert not others.items() <= labels.items()


@pytest.mark.parametrize(
    ("output", "features"), [("node", {"get", "delete"}), ("nodefeature", {"get", "delete", "create", "patch"})]
)
def test_it_may_label_nodes_and_write_features_only_where_that_is_its_output(
    render: Render, output: str, features: set[str]
) -> None:
    objects = render(f'labeller.config={{"output": "{output}"}}')
    assert rights(only(objects, "ClusterRole", NAME)["rules"]) == {("nodes", "get"), ("nodes", "patch")}
    assert rights(only(objects, "Role", NAME)["rules"]) == {("nodefeatures", verb) for verb in features}


def test_without_it_nothing_of_it_is_installed(render: Render) -> None:
    objects = render("labeller.enabled=false")
    assert [each["metadata"]["name"] for each in objects if "label" in each["metadata"]["name"]] == []
    assert [each["name"] for each in pod(objects, "Job", REMOVAL)["containers"]] == ["resources"]


def test_others_run_where_a_share_was_found_if_that_is_wanted(render: Render) -> None:
    def affinity(*values: str) -> Object | None:
        found: Object | None = pod(render(*values), name="edgeshare").get("affinity")
        return found

    assert affinity() is None
    anti = {"podAntiAffinity": {"x": []}}
    both = affinity("onlyLabelledNodes=true", f"affinity={json.dumps(anti)}")
    assert both is not None
    assert both["podAntiAffinity"] == anti["podAntiAffinity"]
    terms = both["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchExpressions"] for term in terms] == [
        [{"key": key, "operator": "In", "values": ["true"]}] for key in ("edge/gpu.share", "edge/tpu.share")
    ]
    with pytest.raises(subprocess.CalledProcessError) as said:
        affinity("onlyLabelledNodes=true", 'affinity={"nodeAffinity": {}}')
    assert "onlyLabelledNodes is a node affinity itself" in said.value.stderr


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (("onlyLabelledNodes=true", "runtimeClassName=nvidia"), True),
        (("onlyLabelledNodes=true", "runtimeClassName=nvidia", "labeller.runtimeClassName=nvidia"), False),
        (("onlyLabelledNodes=true",), False),
        (("runtimeClassName=nvidia",), False),
    ],
)
def test_who_installs_is_told_where_nothing_would_be_found(
    installed: ApiServer, helm: Path, values: tuple[str, ...], told: bool
) -> None:
    # Helm tells it with an API server alone.
    options = ("--dry-run=client", "--namespace=edgeshare", f"--kubeconfig={installed.kubeconfig}")
    line = [helm, "install", "another", ROOT / "deploy/chart", *options, *(f"--set={each}" for each in values)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("Set labeller.runtimeClassName, or leave onlyLabelledNodes out" in done.stdout) is told


def test_wrong_key_is_refused_by_its_name(render: Render) -> None:
    for value in ('labeller.config={"root": "/"}', 'labeller.config={"output": "stdout"}', "labeller.image=1"):
        with pytest.raises(subprocess.CalledProcessError) as said:
            render(value)
        assert "at '/labeller" in said.value.stderr


def test_page_on_the_labeller_names_every_key_with_its_default() -> None:
    page = (ROOT / "docs/parts/labeller.md").read_text()
    schema = yaml.safe_load((ROOT / "deploy/chart/values.schema.json").read_text())["$defs"]["labeller"]
    said = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for key, described in schema["properties"].items():
        assert key in said, key
        default = described.get("default")
        if isinstance(default, bool | int | str) and default != "":
            shown = str(default).lower() if isinstance(default, bool) else str(default)
            assert f"| `{shown}` |" in said[key], key
