"""What the documents set in the chart, and the files of values beside it: an API server takes all that this makes, and
warns of nothing. (It refuses two mounts of one path in a container, and warns of two variables of one name.)"""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.kit.apiserver.api_server import ApiServer
from tests.kit.deploy.blocks import ROOT, blocks, commands, typed
from tests.kit.deploy.objects import Object
from tests.kit.deploy.programs import CHART, values_given
from tests.kit.programs.kinds import PROMETHEUS_OPERATOR, definitions

VALUES = json.loads((ROOT / CHART / "values.schema.json").read_text())["properties"].keys()
PATH = "extraVolumeMounts: [{name: sys, mountPath: /etc/edgeshare}]"
VARIABLE = "extraEnv: [{name: NODE_NAME, value: one}]"
VOLUME = "extraVolumes: [{name: config, emptyDir: {}}]"


def from_files() -> dict[str, str]:
    """The files of values."""
    return {path.name: path.read_text() for path in sorted((ROOT / "deploy/examples").glob("values-*.yaml"))}


def from_blocks() -> dict[str, str]:
    """Values that stand in pages."""
    found = {}
    for block in blocks():
        if block.language == "yaml" and not block.marked:
            documents = list(yaml.safe_load_all(block.text))
            if all(isinstance(each, dict) and each.keys() <= VALUES for each in documents):
                found[str(block)] = block.text
    return found


def from_commands() -> dict[str, list[str]]:
    """What pages install or upgrade our chart with, as options of `helm template`; once what is the same."""
    found = {}
    for block in blocks():
        if block.language in ("sh", "console") and not block.marked:
            for words in commands(typed(block)):
                if words[0] == "helm" and words[1] in ("install", "upgrade") and words[3] == CHART:
                    found[shlex.join(values_given(words))] = values_given(words)
    return found


def given(text: str, folder: Path) -> list[str]:
    """Values as options of `helm template`."""
    path = folder / "values.yaml"
    path.write_text(text)
    return [f"--values={path}"]


def rendered(helm: Path, words: list[str]) -> list[Object]:
    """The objects of a release that no API server here has yet."""
    line = [helm, "template", "documented", CHART, *words, "--namespace=edgeshare", "--kube-version=1.36.0"]
    text = subprocess.run(line, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def said_against(server: ApiServer, objects: list[Object]) -> str:
    """What the API server says against objects that it has not yet."""
    assert {"DaemonSet", "Job"} <= {each["kind"] for each in objects}
    words = ("create", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "--filename=-")
    done = server.kubectl(*words, stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return done.stderr if done.returncode else ""


def held(server: ApiServer, objects: list[Object]) -> None:
    """Holds what a documented set of values makes to what is wanted of each."""
    assert said_against(server, objects) == ""
    pods = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "DaemonSet"]
    assert len(pods) == 2
    # Without the class that brings the driver the labeller finds none of the GPUs that NVML lists.
    assert len({pod.get("runtimeClassName") for pod in pods}) == 1


@pytest.fixture(scope="module")
def server(installed: ApiServer) -> ApiServer:
    """One that has the kinds of Prometheus' operator, too."""
    installed.define(definitions(PROMETHEUS_OPERATOR))
    return installed


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in (from_files() | from_blocks()).items()])
def test_values_make_what_an_api_server_takes(server: ApiServer, helm: Path, text: str, tmp_path: Path) -> None:
    held(server, rendered(helm, given(text, tmp_path)))


@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in from_commands().items()])
def test_commands_make_what_an_api_server_takes(server: ApiServer, helm: Path, words: list[str]) -> None:
    held(server, rendered(helm, words))


def test_all_kinds_of_them_are_found() -> None:
    assert len(from_files()) == 4
    assert {name.partition(":")[0] for name in from_blocks()} >= {"docs/parts/inventory.md", "docs/clusters/k3s.md"}
    assert any("runtimeClassName=nvidia" in each for each in from_commands())


@pytest.mark.parametrize(
    ("text", "said"), [(PATH, "must be unique"), (VOLUME, "Duplicate value"), (VARIABLE, "hides previous definition")]
)
def test_what_is_there_twice_is_told(server: ApiServer, helm: Path, text: str, said: str, tmp_path: Path) -> None:
    assert said in said_against(server, rendered(helm, given(text, tmp_path)))
