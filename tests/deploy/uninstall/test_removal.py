"""What `helm uninstall` runs at its end: a Job that takes from the cluster what the parts wrote about nodes."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from edgeshare.cli import cli
from edgeshare.contract.names import ACCELERATOR_NODES_CRD, GPU_MEMORY_MIB, GPU_RELEASED
from tests.kit.apiserver.api_server import ApiServer, Done, done
from tests.kit.deploy.objects import Object, Render

CRDS = Path(__file__).parents[3] / "deploy/chart/crds"
REMOVAL = "edgeshare-removal"
PLUGIN = "system:serviceaccount:edgeshare:edgeshare"
WITH_ALL, BARE, LEFT = "removal-with-all", "removal-bare", "removal-left"
STATUS = {"deviceCount": 0, "healthyCount": 0, "allocationCount": 0, "devices": [], "allocations": []}


def node(name: str, **annotations: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": {"a": "b", **annotations}}}


def told(name: str) -> Object:
    return {
        "apiVersion": "share.edge/v1alpha1",
        "kind": "AcceleratorNode",
        "metadata": {"name": name},
        "status": STATUS,
    }


@pytest.fixture
def cluster(installed: ApiServer, somebody: Callable[..., ApiServer]) -> Iterator[ApiServer]:
    """An API server with a node of which all is told that the parts tell, one of which nothing is, and an
    AcceleratorNode whose node is not there."""
    objects = [node(WITH_ALL, **{GPU_RELEASED: "2026-01-01T00:00:00Z"}), node(BARE)]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    done(installed.kubectl("create", "--filename=-", stdin=everything))
    for name in (WITH_ALL, LEFT):
        done(somebody(PLUGIN, node=name).kubectl("create", "--filename=-", stdin=json.dumps(told(name))))
    resources = {"cpu": "4", "edge/gpu-percent": "200", GPU_MEMORY_MIB: "32768"}
    patch = json.dumps({"status": {"capacity": resources, "allocatable": resources}})
    words = ("patch", "node", WITH_ALL, "--subresource=status", "--type=merge", "--patch", patch)
    done(installed.kubectl(*words))
    yield installed
    done(installed.kubectl("delete", "node", WITH_ALL, BARE))
    # Where its kind is gone, so are they.
    installed.define(CRDS)
    done(installed.kubectl("delete", ACCELERATOR_NODES_CRD, WITH_ALL, LEFT, "--ignore-not-found"))


@pytest.fixture
def remove(cluster: ApiServer, tmp_path: Path) -> Callable[..., Done]:
    """Runs the command there with more options; what it said."""
    config = tmp_path / "deviceplugin.yaml"
    config.write_text(yaml.safe_dump({"kubeconfig": str(cluster.kubeconfig)}))
    words = [sys.executable, "-m", "edgeshare.cli", "deviceplugin", f"--config={config}", "--remove"]
    return lambda *more: subprocess.run([*words, *more], capture_output=True, text=True, check=False)


def resources(server: ApiServer, name: str) -> dict[str, dict[str, str]]:
    status = json.loads(done(server.kubectl("get", "node", name, "--output=json")).stdout)["status"]
    return {field: status.get(field, {}) for field in ("capacity", "allocatable")}


def annotations(server: ApiServer, name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(done(server.kubectl("get", "node", name, "--output=json")).stdout)["metadata"][
        "annotations"
    ]
    return found


def test_what_the_parts_wrote_about_nodes_is_taken_and_nothing_else(
    cluster: ApiServer, remove: Callable[..., Done]
) -> None:
    said = done(remove("--all-nodes")).stdout.splitlines()
    of_these = [line for line in said if line.startswith((WITH_ALL, BARE))]
    assert of_these == [f"{WITH_ALL}: -{each}" for each in (GPU_MEMORY_MIB, GPU_RELEASED, "AcceleratorNode")]
    # The kubelet's, which takes them away itself.
    units = {"cpu": "4", "edge/gpu-percent": "200"}
    assert resources(cluster, WITH_ALL) == {"capacity": units, "allocatable": units}
    assert annotations(cluster, WITH_ALL) == annotations(cluster, BARE) == {"a": "b"}
    left = {
        each.rpartition("/")[2]
        for each in done(cluster.kubectl("get", ACCELERATOR_NODES_CRD, "--output=name")).stdout.split()
    }
    assert LEFT in left
    assert WITH_ALL not in left
    # Once more there is nothing.
    assert done(remove("--all-nodes")).stdout == ""


def test_kind_goes_with_all_objects_of_it_where_it_is_not_kept(cluster: ApiServer, remove: Callable[..., Done]) -> None:
    assert (
        done(remove("--all-nodes", "--crds")).stdout.splitlines()[-1]
        == f"customresourcedefinitions: -{ACCELERATOR_NODES_CRD}"
    )
    done(cluster.kubectl("wait", "--for=delete", f"crd/{ACCELERATOR_NODES_CRD}", "--timeout=60s"))
    # Nor is it missed where it is not there.
    assert done(remove("--all-nodes", "--crds")).stdout == ""


def test_one_node_has_it_taken_by_its_name(
    cluster: ApiServer, remove: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_NAME", BARE)
    assert done(remove()).stdout == ""
    assert GPU_MEMORY_MIB in resources(cluster, WITH_ALL)["capacity"]
    monkeypatch.setenv("NODE_NAME", WITH_ALL)
    assert f"{WITH_ALL}: -{GPU_MEMORY_MIB}" in done(remove()).stdout.splitlines()
    assert GPU_MEMORY_MIB not in resources(cluster, WITH_ALL)["capacity"]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--all-nodes",), 2, "--all-nodes goes with --remove"),
        (("--crds",), 2, "--crds goes with --all-nodes"),
        (("--remove", "--crds"), 2, "--crds goes with --all-nodes"),
        (("--remove",), 1, "there is no cluster to remove anything from: set kubeconfig in --config"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_line(
    options: tuple[str, ...], status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    words = [sys.executable, "-m", "edgeshare.cli", "deviceplugin", *options]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == status
    assert said in ended.stderr.splitlines()[-1]


def test_it_comes_after_the_parts_rights_and_is_in_no_manifest(render: Render, manifest: Path) -> None:
    hooks = {
        (each["kind"], each["metadata"]["name"]): each["metadata"]["annotations"]
        for each in render()
        if "helm.sh/hook" in each["metadata"].get("annotations", {})
    }
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "NetworkPolicy", "Job")
    assert hooks.keys() == {(kind, REMOVAL) for kind in kinds}
    assert {each["helm.sh/hook"] for each in hooks.values()} == {"post-delete"}
    assert all(each["helm.sh/hook-weight"] == ("0" if kind == "Job" else "-1") for (kind, _), each in hooks.items())
    assert REMOVAL not in manifest.read_text()


def test_its_job_ends_whether_somebody_waits_for_it_or_not(render: Render) -> None:
    """An image that cannot be had would keep it, and its account, for ever."""
    (job,) = (each for each in render() if each["kind"] == "Job" and each["metadata"]["name"] == REMOVAL)
    assert job["spec"]["activeDeadlineSeconds"] == 3600


@pytest.mark.parametrize(("value", "more"), [("crds.keep=true", []), ("crds.keep=false", ["--crds"])])
def test_its_commands_are_the_parts_own(render: Render, value: str, more: list[str]) -> None:
    (job,) = (each for each in render(value) if each["kind"] == "Job" and each["metadata"]["name"] == REMOVAL)
    commands = [each["command"] for each in job["spec"]["template"]["spec"]["containers"]]
    for _, *words in commands:
        assert CliRunner().invoke(cli, [*words, "--help"]).exit_code == 0
    removing = ["--remove", "--all-nodes"]
    assert commands == [["edgeshare", "labeller", *removing], ["edgeshare", "deviceplugin", *removing, *more]]
