"""The chart's labeller: an ordinary user with the node's files read only, its rights, and its end."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from edgeshare.cli import cli
from edgeshare.config_file import read_config
from edgeshare.kube.kube import Kube
from labeller.config import Config
from labeller.feature_output import VERSION, FeatureOutput
from labeller.names import FEATURE_PREFIX, FIELD_MANAGER, NFD_NODE_NAME
from tests.kit.apiserver.api_server import ApiServer, Done, done, refused, until_told
from tests.kit.programs.binaries import KUBERNETES, program

ROOT = Path(__file__).parent.parent.parent
NAME = "edgeshare-labeller"
REMOVAL = "edgeshare-removal"
ACCOUNT = f"system:serviceaccount:edgeshare:{NAME}"


Object = dict[str, Any]
Render = Callable[..., list[Object]]
Somebody = Callable[..., ApiServer]


def only(objects: list[Object], kind: str, name: str = NAME) -> Object:
    """The one object of a kind and a name: with nothing else named, of the labeller."""
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def pod(objects: list[Object], kind: str = "DaemonSet", name: str = NAME) -> Object:
    spec: Object = only(objects, kind, name)["spec"]["template"]["spec"]
    return spec


def rights(rules: list[Object]) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def test_it_is_an_ordinary_user_with_no_power_who_writes_nothing_on_the_node(render: Render) -> None:
    for spec in (pod(render()), pod(render(), "Job", REMOVAL)):
        container = spec["containers"][0]
        assert container["securityContext"] == {
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
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
    config.write_text(only(objects, "ConfigMap")["data"]["labeller.yaml"])
    root = str(read_config(config, Config).root)
    seen = {mount["mountPath"]: on_node[mount["name"]] for mount in mounts if mount["name"] in on_node}
    assert seen == {f"{root}{path}": path for path in paths}
    assert set(on_node.values()) == set(paths)


def test_it_runs_on_and_reads_the_configuration_that_is_set(render: Render, tmp_path: Path) -> None:
    def config(*values: str) -> Config:
        path = tmp_path / "labeller.yaml"
        path.write_text(only(render(*values), "ConfigMap")["data"]["labeller.yaml"])
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
        path.write_text(only(objects, "ConfigMap")["data"]["labeller.yaml"])
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
    others = only(objects, "DaemonSet", "edgeshare")["spec"]["selector"]["matchLabels"]
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
    assert rights(only(objects, "ClusterRole")["rules"]) == {("nodes", "get"), ("nodes", "patch")}
    assert rights(only(objects, "Role")["rules"]) == {("nodefeatures", verb) for verb in features}


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


def test_wrong_key_is_refused_by_its_name(render: Render) -> None:
    for value in ('labeller.config={"root": "/"}', 'labeller.config={"output": "stdout"}', "labeller.image=1"):
        with pytest.raises(subprocess.CalledProcessError) as said:
            render(value)
        assert "at '/labeller" in said.value.stderr


def node(name: str, **labels: str) -> Object:
    """A Node with no kubelet."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def apply(server: ApiServer, name: str, **labels: str) -> Done:
    """Applies labels as the labeller does."""
    words = ("apply", "--server-side", f"--field-manager={FIELD_MANAGER}", "-f", "-")
    return server.kubectl(*words, stdin=json.dumps(node(name, **labels)))


@pytest.fixture(scope="module")
def nodes(installed: ApiServer, somebody: Somebody) -> ApiServer:
    """The API server with two Nodes; the policy is in force."""
    for each in (node("labelled-a", role="edge"), node("labelled-b")):
        done(installed.kubectl("create", "-f", "-", stdin=json.dumps(each)))
    until_told(lambda: apply(somebody(ACCOUNT), "labelled-b", **{"gpu.model": "x"}).stderr, "its own node alone")
    return installed


def test_labeller_writes_labels_of_its_kind_on_its_own_node_and_nothing_else(
    nodes: ApiServer, somebody: Somebody
) -> None:
    labeller = somebody(ACCOUNT, "labelled-a")
    ours = {"edge/gpu.share": "true", "gpu.model": "Tesla-T4", "beta.devicetree.org/nvidia-tegra210": "1"}
    done(apply(labeller, "labelled-a", **ours))
    refused(apply(labeller, "labelled-b", **ours), "a labeller writes the labels of its own node alone")
    kinds = "a labeller writes labels that begin with edge/, gpu. or beta.devicetree.org/, and not edge/config"
    for name in ("node-role.kubernetes.io/control-plane", "edge/config", "edges/x"):
        refused(apply(labeller, "labelled-a", **ours, **{name: ""}), kinds)
    refused(labeller.kubectl("label", "node", "labelled-a", "role-"), kinds)
    others = "of a Node a labeller writes labels alone"
    refused(labeller.kubectl("annotate", "node", "labelled-a", "other=y"), others)
    refused(labeller.kubectl("taint", "node", "labelled-a", "other=y:NoExecute"), others)
    done(apply(labeller, "labelled-a"))
    left = nodes.kubectl("get", "node", "labelled-a", "--output=jsonpath={.metadata.labels}")
    assert json.loads(left.stdout) == {"role": "edge"}


def test_others_label_nodes_as_ever(nodes: ApiServer) -> None:
    done(nodes.kubectl("label", "node", "labelled-b", "node-role.kubernetes.io/edge=", "edge/config=lab"))


FEATURES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "nodefeatures.nfd.k8s-sigs.io",
        # Names below k8s.io need it: https://github.com/kubernetes/enhancements/pull/1111
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    },
    "spec": {
        "group": "nfd.k8s-sigs.io",
        "scope": "Namespaced",
        "names": {"kind": "NodeFeature", "plural": "nodefeatures", "singular": "nodefeature"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "features": {"type": "object"},
                                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
"""What is needed here of node-feature-discovery's (deployment/base/nfd-crds/nfd-api-crds.yaml there)."""


@pytest.fixture(scope="module")
def with_features(nodes: ApiServer) -> ApiServer:
    """The same API server, which knows NodeFeature objects."""
    done(nodes.kubectl("apply", "-f", "-", stdin=json.dumps(FEATURES)))
    done(nodes.kubectl("wait", "--for=condition=Established", "crd/nodefeatures.nfd.k8s-sigs.io", "--timeout=60s"))
    return nodes


def test_feature_object_is_made_changed_and_deleted_at_a_real_api_server(with_features: ApiServer) -> None:
    output = FeatureOutput(Kube.from_kubeconfig(with_features.kubeconfig), "labelled-b", "edgeshare")

    def made(path: str) -> str:
        found = with_features.kubectl(
            "get", "nodefeatures", "--namespace=edgeshare", f"--output=jsonpath={{.items[*]{path}}}"
        )
        return done(found).stdout

    output.write({"gpu.model": "Tesla-T4", "edge/gpu.count": "1"}, complete=True)
    uid = with_features.kubectl("get", "node", "labelled-b", "--output=jsonpath={.metadata.uid}").stdout
    assert json.loads(made(".metadata.ownerReferences[0]"))["uid"] == uid
    output.write({"edge/gpu.count": "2"}, complete=True)
    assert json.loads(made(".spec.labels")) == {"edge/gpu.count": "2"}
    assert output.remove().before == {"edge/gpu.count": "2"}
    assert made(".metadata.name") == ""


def test_labeller_writes_the_feature_object_of_its_own_node_and_nothing_else(
    with_features: ApiServer, somebody: Somebody
) -> None:
    # What the chart's role allows where features are the output.
    rights = ("--verb=get,create,patch,delete", "--resource=nodefeatures.nfd.k8s-sigs.io")
    done(with_features.kubectl("create", "role", "features", "--namespace=edgeshare", *rights))
    binding = ("--role=features", "--serviceaccount=edgeshare:edgeshare-labeller")
    done(with_features.kubectl("create", "rolebinding", "features", "--namespace=edgeshare", *binding))
    labeller = somebody(ACCOUNT, "labelled-a")

    def write(name: str, of: str, **spec: Any) -> Done:
        metadata = {"name": name, "namespace": "edgeshare", "labels": {NFD_NODE_NAME: of}}
        feature = {"apiVersion": VERSION, "kind": "NodeFeature", "metadata": metadata, "spec": spec}
        return labeller.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(feature))

    ours = {"edge/gpu.share": "true", f"{FEATURE_PREFIX}gpu.model": "x", "beta.devicetree.org/nvidia-tegra210": "1"}
    own, own_node = "edgeshare-labelled-a", "a labeller writes the NodeFeature of its own node alone"
    until_told(lambda: write("edgeshare-labelled-b", "labelled-b", labels=ours).stderr, own_node)
    done(write(own, "labelled-a", labels=ours))
    refused(write(own, "labelled-b", labels=ours), own_node)
    refused(write("other", "labelled-a", labels=ours), own_node)
    kinds = "of a NodeFeature a labeller writes labels that begin with"
    for name in ("node-role.kubernetes.io/control-plane", "edge/config", f"{FEATURE_PREFIX}cpu-model"):
        refused(write(own, "labelled-a", labels={name: ""}), kinds)
    refused(write(own, "labelled-a", labels=ours, features={}), kinds)
    someone_elses = {
        "apiVersion": VERSION,
        "kind": "NodeFeature",
        "metadata": {"name": "theirs"},
        "spec": {"labels": {}},
    }
    done(with_features.kubectl("create", "--namespace=edgeshare", "-f", "-", stdin=json.dumps(someone_elses)))
    delete = ("delete", "nodefeature", "--namespace=edgeshare")
    refused(labeller.kubectl(*delete, "theirs"), own_node)
    done(labeller.kubectl(*delete, own))
    done(with_features.kubectl(*delete, "theirs"))


def test_labels_go_by_what_the_page_says_for_those_without_helm(nodes: ApiServer, tmp_path: Path) -> None:
    done(apply(nodes, "labelled-a", **{"gpu.model": "Tesla-T4"}))
    page = (ROOT / "docs/labeller.md").read_text()
    loop = page[page.index("for node in") : page.index("done\n", page.index("for node in")) + len("done\n")]
    programs = f"{program(KUBERNETES, 'kubectl').parent}:/usr/bin:/bin"
    environment = {"KUBECONFIG": str(nodes.kubeconfig), "HOME": str(tmp_path), "PATH": programs}
    done(subprocess.run(["sh", "-ec", loop], env=environment, capture_output=True, text=True, check=False))
    left = nodes.kubectl("get", "node", "labelled-a", "--output=jsonpath={.metadata.labels}")
    assert json.loads(left.stdout) == {"role": "edge"}


def test_page_on_the_labeller_names_every_key_with_its_default() -> None:
    page = (ROOT / "docs/labeller.md").read_text()
    schema = yaml.safe_load((ROOT / "deploy/chart/values.schema.json").read_text())["$defs"]["labeller"]
    said = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for key, described in schema["properties"].items():
        assert key in said, key
        default = described.get("default")
        if isinstance(default, bool | int | str) and default != "":
            shown = str(default).lower() if isinstance(default, bool) else str(default)
            assert f"| `{shown}` |" in said[key], key
