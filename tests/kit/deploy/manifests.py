"""How YAML of the documents is held to who reads it: an API server with the chart, the chart, a part of ours."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from deviceplugin.config import Config as DevicePlugin
from edgeshare.config_file import read_config
from edgeshare.contract.errors import InvalidRequest
from labeller.config import Config as Labeller
from sharemgr.cluster.config import Config as Assigner
from sharemgr.node.config import Config as ShareManager
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.deploy.blocks import ROOT
from tests.kit.deploy.objects import Object
from tests.kit.programs.binaries import KUBERNETES, program
from tests.kit.programs.kinds import CERT_MANAGER, definitions

CHART = ROOT / "deploy/chart"
PARTS = (ShareManager, DevicePlugin, Labeller, Assigner)
RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
}
"""That pods of the documents name: an API server refuses a pod of a class that it has not."""

SCHEDULER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
RUN = {"KubeSchedulerConfiguration": "tests/deploy/certificates/test_page.py"}
"""Kinds that no API server knows → the test that gives the document to who does."""


def unknown(schema: Object, value: Any, where: str = "") -> Iterator[str]:
    """Keys of a value that a schema of Kubernetes does not name."""
    if isinstance(value, list):
        for each in value:
            yield from unknown(schema.get("items", {}), each, where)
    elif isinstance(value, dict) and "properties" in schema:
        for key, each in value.items():
            if key in schema["properties"]:
                yield from unknown(schema["properties"][key], each, f"{where}.{key}")
            else:
                yield f"{where}.{key} is not known"


class Manifests:
    """Looks at YAML for an API server that has the chart installed; files of its own go into a folder."""

    def __init__(self, server: ApiServer, helm: Path, folder: Path) -> None:
        self._server = server
        self._helm = helm
        self._folder = folder
        self._values = json.loads((CHART / "values.schema.json").read_text())["properties"].keys()
        (kind,) = (yaml.safe_load(path.read_text()) for path in (CHART / "crds").glob("*.yaml"))
        self._node: Object = kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        done(server.kubectl("apply", "--filename=-", stdin=json.dumps(RUNTIME_CLASS)))
        server.define(definitions(CERT_MANAGER))

    def wrong_with(self, text: str) -> list[str]:
        """What is wrong with the documents of a text, each by whoever reads such a one."""
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
        return [wrong for each in documents for wrong in self._wrong(each)] if documents else ["there is nothing"]

    def _wrong(self, document: Object) -> list[str]:
        keys = document.keys()
        if {"apiVersion", "kind"} <= keys:
            return self._object(document)
        if keys <= self._values:
            return self._chart(document)
        # An AcceleratorNode's: no part is configured by its key of that name alone.
        if keys == {"status"}:
            return list(unknown(self._node, document))
        parts = [part for part in PARTS if keys <= part.model_fields.keys()]
        if parts:
            return [wrong for part in parts for wrong in self._configuration(document, part)]
        if keys <= {"env", "resources"}:
            return self._pod({"containers": [document]})
        if keys == {"spec"}:
            return self._pod(document["spec"])
        if keys <= {"leaderElection", "profiles"}:
            return self._scheduler(document)
        return [f"nobody says what this is: {', '.join(keys)}"]

    def _object(self, document: Object) -> list[str]:
        kind = document["kind"]
        if kind in RUN:
            return [] if (ROOT / RUN[kind]).is_file() else [f"{RUN[kind]} is not there"]
        # Its namespace need not be there.
        metadata = {key: value for key, value in document["metadata"].items() if key != "namespace"}
        wrong = self._taken({**document, "metadata": metadata})
        template = document.get("spec", {}).get("template")
        # Policies look at pods, and not at what makes them.
        return wrong + (self._pod(template["spec"], template.get("metadata", {})) if template else [])

    def _pod(self, spec: Object, metadata: Object | None = None) -> list[str]:
        """A pod of what a piece says, with whatever each has to have beside."""
        containers = [{"name": "main", "image": "none", **each} for each in spec["containers"]]
        named = {"name": "piece", **(metadata or {})}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": {**spec, "containers": containers}}
        return self._taken(pod)

    def _taken(self, document: Object) -> list[str]:
        words = ("create", "--dry-run=server", "--validate=strict", "--filename=-")
        process = self._server.kubectl(*words, stdin=json.dumps(document))
        return process.stderr.splitlines() if process.returncode else []

    def _chart(self, values: Object) -> list[str]:
        line = [self._helm, "template", "edgeshare", CHART, "--kube-version=1.36.0", f"--values={self._file(values)}"]
        process = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False)
        return process.stderr.splitlines()

    def _configuration(self, document: Object, part: type[Any]) -> list[str]:
        try:
            read_config(self._file(document), part)
        except InvalidRequest as error:
            return [str(error)]
        return []

    def _scheduler(self, document: Object) -> list[str]:
        whole = {**SCHEDULER, "clientConnection": {"kubeconfig": str(self._server.kubeconfig)}, **document}
        words = [program(KUBERNETES, "kube-scheduler"), f"--config={self._file(whole)}", "--secure-port=0"]
        line = [*words, f"--write-config-to={self._folder / 'taken.yaml'}"]
        process = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False, timeout=60)
        return process.stderr.splitlines() if process.returncode else []

    def _file(self, content: Object) -> Path:
        path = self._folder / "given.yaml"
        path.write_text(yaml.safe_dump(content))
        return path
