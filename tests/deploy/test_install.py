"""What a cluster has once the plain manifest is applied, and what the page on values says of it."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import edgeshare
from edgeshare.contract.names import ACCELERATOR_NODES_CRD
from tests.kit.apiserver.api_server import ApiServer
from tests.kit.deploy.objects import Object, Render
from tests.kit.deploy.rights import until_may

ROOT = Path(__file__).parent.parent.parent
PARTS = ("shareManager", "devicePlugin")
ACCOUNT = "system:serviceaccount:edgeshare:edgeshare"


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        ("list pods", "yes"),
        ("get nodes", "yes"),
        ("patch nodes --subresource=status", "yes"),
        ("create events", "yes"),
        ("patch nodes", "no"),
        ("watch pods", "yes"),
        ("patch pods", "yes"),
        (f"patch {ACCELERATOR_NODES_CRD}", "yes"),
        (f"watch {ACCELERATOR_NODES_CRD}", "yes"),
        (f"delete {ACCELERATOR_NODES_CRD}", "no"),
        ("delete pods", "no"),
        ("get secrets", "no"),
    ],
)
def test_service_account_has_the_rights_that_the_plugin_uses(right: str, answer: str, installed: ApiServer) -> None:
    until_may(installed, ACCOUNT, f"{right} --all-namespaces", answer)


def leaves(schema: Object, *above: str) -> Iterator[tuple[str, ...]]:
    """The paths of all values in a schema that have no others below them."""
    for key, described in schema["properties"].items():
        if "properties" in described:
            yield from leaves(described, *above, key)
        else:
            yield (*above, key)


def named(page: str) -> set[str]:
    """The values that the tables of a page name in their first column, where `.second` is beside `part.first`."""
    found = set()
    for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE):
        before = ""
        for each in re.findall(r"`([\w.]+)`", row):
            before = f"{before.rpartition('.')[0]}{each}" if each.startswith(".") else each
            found.add(before)
    return found


def test_page_on_values_names_every_value() -> None:
    told = named((ROOT / "docs/install/values.md").read_text())
    schema = json.loads((ROOT / "deploy/chart/values.schema.json").read_text())
    of_chart = [path for path in leaves(schema) if path != ("global",)]
    assert len(of_chart) > 60
    # Or what they are a part of.
    whole = [[".".join(path[:end]) for end in range(1, len(path) + 1)] for path in of_chart]
    assert [names[-1] for names in whole if not told & set(names)] == []
    of_parts = {key for part in PARTS for key in schema["$defs"][part]["properties"]}
    assert of_parts - told == set()


def test_page_on_values_gives_the_defaults_of_the_configurations() -> None:
    page = (ROOT / "docs/install/values.md").read_text()
    schema = json.loads((ROOT / "deploy/chart/values.schema.json").read_text())
    said = dict(re.findall(r"^\| `(\w+)` \| `?([\w./]+)`? \|", page, re.MULTILINE))
    keys = {
        key: str(described["default"])
        for part in PARTS
        for key, described in schema["$defs"][part]["properties"].items()
        # A list of nothing is told in words.
        if not isinstance(described["default"], list | dict)
    }
    assert keys
    assert {key: said.get(key) for key in keys} == keys


def test_api_server_takes_a_daemon_set_whose_update_surges(
    installed: ApiServer, render: Callable[..., list[Any]]
) -> None:
    values = 'updateStrategy.rollingUpdate={"maxSurge": 1, "maxUnavailable": 0}'
    (daemon_set,) = [
        each for each in render(values) if each["kind"] == "DaemonSet" and each["metadata"]["name"] == "edgeshare"
    ]
    arguments = ("apply", "--dry-run=server", "--validate=strict", "--output=json", "--filename=-")
    done = installed.kubectl(*arguments, stdin=json.dumps(daemon_set))
    assert done.returncode == 0, done.stderr
    taken = json.loads(done.stdout)["spec"]["updateStrategy"]
    assert taken == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@pytest.mark.parametrize(
    ("values", "on_nodes", "assigners"),
    [
        (['image.tag="2"'], "edgeshare:2", "edgeshare:2"),
        (['image.repository="a/node"', 'assigner.image.repository="a/whole"'], "a/node:0", "a/whole:0"),
        (['image.tag="2"', 'assigner.image={"repository": "whole", "tag": "3"}'], "edgeshare:2", "whole:3"),
    ],
)
def test_what_runs_on_nodes_may_be_another_image_than_the_assigners(
    render: Render, values: list[str], on_nodes: str, assigners: str
) -> None:
    objects = render(*values, "assigner.enabled=true", "assigner.tls.enabled=false")

    def images(kind: str) -> set[str]:
        pods = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == kind]
        return {
            container["image"].replace(edgeshare.__version__, "0") for pod in pods for container in pod["containers"]
        }

    assert images("DaemonSet") == {on_nodes}
    assert images("Deployment") == {assigners}


def test_the_manifest_names_the_registrys_image_alone_as_the_page_has_it_changed(manifest: Path) -> None:
    page = (ROOT / "docs/install/index.md").read_text()
    (typed,) = re.findall(r"^(sed .*) \| kubectl apply -f -$", page, re.MULTILINE)
    script = typed.replace("dist/edgeshare.yaml", shlex.quote(str(manifest)))
    changed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    images = re.findall(r"^ *(?:- )?image: (.*)$", changed, re.MULTILINE)
    assert set(images) == {f'"REGISTRY/edgeshare:{edgeshare.__version__}"'}
    assert changed.replace("REGISTRY/", "") == manifest.read_text()
