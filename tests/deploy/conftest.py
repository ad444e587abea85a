"""Helm, and an API server that the plain manifest is applied to."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.kit.apiserver.api_server import ApiServer, api_server, until_told
from tests.kit.deploy.objects import Object, Render
from tests.kit.programs.binaries import HELM, program

DEPLOY = Path(__file__).parents[2] / "deploy"

REFUSED = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "older"},
    "spec": {"containers": [{"name": "main", "image": "none", "resources": {"limits": {"edge/gpu-percent": 130}}}]},
}

CLAIM = "authentication.kubernetes.io/node-name"


@pytest.fixture(scope="session")
def helm() -> Path:
    """The Helm that the test node pins."""
    return program(HELM, "helm")


@pytest.fixture(scope="session")
def render(helm: Path) -> Render:
    """Renders the chart, with files of values and values as `--set-json` takes them, into objects; for an API server
    that has ``kinds`` beside what all have, as GROUP/VERSION/KIND, or is of a version. Files must stay as they are.
    Raises CalledProcessError."""

    @cache
    def said(words: Sequence[str]) -> str:
        command = [helm, "template", "edgeshare", DEPLOY / "chart", "--namespace=edgeshare", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def rendered(
        *values: str, kinds: Sequence[str] = (), version: str = "1.30.0", files: Sequence[Path] = ()
    ) -> list[Object]:
        words = [f"--kube-version={version}", *(f"--api-versions={kind}" for kind in kinds)]
        words += [f"--values={path}" for path in files]
        words += [word for value in values for word in ("--set-json", value)]
        # Objects of one's own, which a test may change.
        return [each for each in yaml.load_all(said(tuple(words)), yaml.CSafeLoader) if each]

    return rendered


@pytest.fixture(scope="session")
def manifest(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart for kubectl, as `make manifest` writes it."""
    path = tmp_path_factory.mktemp("manifest") / "edgeshare.yaml"
    subprocess.run([sys.executable, DEPLOY / "render.py", f"--manifest={path}", f"--helm={helm}"], check=True)
    return path


@pytest.fixture(scope="session")
def installed(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server with edgeshare's manifest, and a pod `older` that was there before and is refused now."""
    with api_server(tmp_path_factory.mktemp("api-server")) as server:
        # A controller's work: without it no pod is admitted.
        done = server.kubectl("create", "serviceaccount", "default")
        assert done.returncode == 0, done.stderr
        done = server.create(REFUSED)
        assert done.returncode == 0, done.stderr
        done = server.kubectl("apply", "--validate=strict", f"--filename={manifest}")
        assert done.returncode == 0, done.stderr
        probe = json.dumps({**REFUSED, "metadata": {"name": "probe"}})
        until_told(
            lambda: server.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe).stderr, "edge/gpu-percent: 130"
        )
        yield server


@pytest.fixture(scope="session")
def somebody(installed: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ApiServer]:
    """Somebody else at the same API server, with the node claim of a token where one is named."""

    def somebody(name: str, node: str = "") -> ApiServer:
        config = yaml.safe_load(installed.kubeconfig.read_text())
        user = config["users"][0]["user"]
        user["as"] = name
        if node:
            user["as-user-extra"] = {CLAIM: [node]}
        path = tmp_path_factory.mktemp("somebody") / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return replace(installed, kubeconfig=path)

    return somebody
