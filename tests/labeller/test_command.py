"""``edgeshare labeller`` run once: what it writes, prints, refuses, and its exit status."""

import json
import os
import pty
from pathlib import Path

import pytest
import yaml

from simgpu.trees import JETSONS, add_jetson, write
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.apiserver.server_side_apply import update_labels
from tests.kit.labeller.labeller_under_test import END_S, Labeller
from tests.kit.processes import forked

NANO = {
    "beta.devicetree.org/nvidia-jetson-nano": "1",
    "beta.devicetree.org/nvidia-tegra210": "1",
    "gpu.model": "Jetson-Nano",
}


def test_once_the_node_has_the_labels_and_each_change_is_printed(api: ApiServer, nano: Labeller) -> None:
    done = nano.once()
    assert (done.returncode, done.stderr) == (0, "")
    assert NANO.items() <= api.labels().items()
    assert "n1: gpu.model=Jetson-Nano" in done.stdout.splitlines()
    again = nano.once()
    assert (again.returncode, again.stdout) == (0, "")


def test_what_is_printed_is_not_written(api: ApiServer, nano: Labeller) -> None:
    as_json, as_yaml, plain = (nano.once(option).stdout for option in ("--json", "--yaml", "--dry-run"))
    found = json.loads(as_json)["labels"]
    assert NANO.items() <= found.items()
    assert yaml.safe_load(as_yaml) == {"labels": found}
    assert plain.splitlines() == [f"{name}={value}" for name, value in found.items()]
    assert json.loads(nano.once("--json", "--dry-run").stdout) == {"labels": found}
    assert api.labels() == {}


@pytest.mark.parametrize("board", [True, False])
def test_a_person_sees_a_table(labeller: Labeller, board: bool) -> None:
    if board:
        add_jetson(labeller.root, JETSONS["nano"])
    terminal, end = pty.openpty()
    with os.fdopen(end, "w") as shows:
        process = forked.start([*labeller.arguments, "--dry-run"], {**os.environ, "COLUMNS": "100"}, stdout=shows)
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:
        pass  # a terminal ends so when the last of its users has gone
    os.close(terminal)
    assert process.wait(END_S) == 0
    words = [line.split() for line in shown.decode().splitlines()]
    if board:
        assert ["gpu.model", "Jetson-Nano"] in words
    else:
        assert "nothing that accelerates this node was found" in shown.decode()


def test_node_with_nothing_is_a_normal_node(api: ApiServer, labeller: Labeller) -> None:
    done = labeller.once()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert api.labels() == {}
    assert json.loads(labeller.once("--json").stdout) == {"labels": {}}


def test_source_that_cannot_be_read_is_said_and_what_others_found_is_written(api: ApiServer, nano: Labeller) -> None:
    write(nano.root / "sys/bus/usb", "no folder")
    (nano.root / "sys/firmware/devicetree/base/model").unlink()
    (nano.root / "sys/firmware/devicetree/base/model").mkdir()
    done = nano.once()
    assert done.returncode == 1
    assert "/sys/firmware/devicetree/base/model is not a plain file" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert api.labels()["beta.devicetree.org/nvidia-tegra210"] == "1"


def test_another_owners_label_is_an_error_after_the_rest_is_written(api: ApiServer, nano: Labeller) -> None:
    update_labels(api.nodes["n1"], "kubectl-label", {"gpu.model": "mine"})
    done = nano.once()
    assert done.returncode == 1
    assert "label gpu.model=mine was set by 'kubectl-label' and stays" in done.stderr
    assert api.labels() == {**api.labels(), **NANO, "gpu.model": "mine"}


def test_refusal_and_missing_api_server_are_each_a_line(api: ApiServer, nano: Labeller) -> None:
    api.refused = {"PATCH"}
    refused = nano.once()
    assert refused.returncode == 1
    assert refused.stderr.startswith("edgeshare: the API server refuses PATCH /api/v1/nodes/n1: 403 ")
    kubeconfig = nano.folder / "kubeconfig"
    kubeconfig.write_text(kubeconfig.read_text().replace("http://127.0.0.1:", "http://127.0.0.2:"))
    away = nano.once()
    assert away.returncode == 1
    assert "the API server cannot be asked (GET /api/v1/nodes/n1)" in away.stderr.splitlines()[-1]


def test_removal_takes_labels_whose_source_is_gone_and_leaves_others(api: ApiServer, nano: Labeller) -> None:
    update_labels(api.nodes["n1"], "kubectl-label", {"role": "edge"})
    nano.once()
    nano.configure(root="/nonexistent", reactor_names=False)
    done = nano.once("--remove")
    assert done.returncode == 0
    assert "n1: -gpu.model" in done.stdout.splitlines()
    assert api.labels() == {"role": "edge"}
    assert nano.once("--remove").stdout == ""


def test_output_that_was_chosen_before_is_cleared(api: ApiServer, nano: Labeller) -> None:
    nano.once()
    nano.configure(output="nodefeature")
    assert nano.once().returncode == 0
    assert api.labels() == {}
    assert api.features
    nano.configure()
    assert nano.once().returncode == 0
    assert NANO.items() <= api.labels().items()
    assert api.features == {}
    nano.configure(output="nodefeature")
    nano.once()
    nano.configure()
    assert "n1: -edge" in nano.once("--remove").stdout.replace("feature.node.kubernetes.io", "edge")
    assert api.features == {}


def test_removal_from_all_nodes_goes_on_past_one_that_refuses(api: ApiServer, nano: Labeller) -> None:
    names = [f"n{number}" for number in range(1, 21)]
    for name in names:
        api.nodes.setdefault(name, {"metadata": {"name": name, "uid": f"uid-of-{name}"}})
        nano.configure(node_name=name)
        if name in ("n1", "n7", "n20"):
            nano.once()
    api.nodes["n7"]["metadata"]["managedFields"] = "broken"
    done = nano.once("--remove", "--all-nodes")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "edgeshare: 1 nodes have labels of ours still: n7: the API server's answer is no Node"
    )
    assert api.labels("n1") == api.labels("n20") == {}
    assert api.labels("n7") != {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--json", "--yaml"), "choose one of --json and --yaml"),
        (("--remove", "--dry-run"), "--remove goes with none of"),
        (("--remove", "--interval", "5"), "--interval and --watch-usage go with none of"),
        (("--json", "--watch-usage"), "--interval and --watch-usage go with none of"),
        (("--all-nodes",), "--all-nodes goes with --remove"),
        (("--interval", "0"), "0.0 is not in the range"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(labeller: Labeller, options: list[str], said: str) -> None:
    done = labeller.once(*options)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"kubeconfig": None}, "there is no cluster to write labels to"),
        ({"node_name": ""}, "the node's name is not known: set NODE_NAME"),
        ({"output": "nodefeature", "namespace": ""}, "output nodefeature: set the environment's POD_NAMESPACE"),
        ({"interval": 5}, "unknown key 'interval'"),
        ({"kubeconfig": "/nonexistent"}, "/nonexistent: cannot be used as a kubeconfig"),
    ],
)
def test_what_is_missing_is_named(api: ApiServer, labeller: Labeller, keys: dict[str, object], said: str) -> None:
    labeller.configure(**keys)
    done = labeller.once()
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert said in done.stderr


def test_an_environment_that_names_no_api_server_is_no_pods(
    labeller: Labeller, monkeypatch: pytest.MonkeyPatch
) -> None:
    labeller.configure(kubeconfig=None)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "")
    assert "there is no cluster to write labels to" in labeller.once().stderr


def test_names_come_from_the_environment(api: ApiServer, nano: Labeller, monkeypatch: pytest.MonkeyPatch) -> None:
    nano.configure(node_name="", namespace="", output="nodefeature")
    monkeypatch.setenv("NODE_NAME", "n1")
    monkeypatch.setenv("POD_NAMESPACE", "team")
    assert nano.once().returncode == 0
    assert api.features is not None
    assert set(api.features) == {("team", "edgeshare-n1")}


def test_folder_of_a_config_is_not_needed(tmp_path: Path, nano: Labeller) -> None:
    """Without a file everything has its default, and options go before it."""
    add_jetson(tmp_path / "another", JETSONS["tx2"])
    done = nano.once("--json", "--root", str(tmp_path / "another"), "-n", "cpu")
    assert json.loads(done.stdout)["labels"]["gpu.model"] == "Jetson-TX2"
