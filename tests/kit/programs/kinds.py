"""Kinds of objects that others' releases bring, as their Go modules define them."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from tests.kit.processes.command import run, say
from tests.kit.programs.binaries import MODULES, Module
from tests.kit.programs.cache import cache_dir, make_once
from tests.kit.programs.golang import go_program


@dataclass(frozen=True)
class Kinds:
    """Files with CustomResourceDefinitions in a module of which nothing is built."""

    module: Module
    folder: str
    names: tuple[str, ...]


CERT_MANAGER = Kinds(
    Module("cert-manager", "github.com/cert-manager/cert-manager", {}, takes="seconds"),
    "deploy/crds",
    ("cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml"),
)
PROMETHEUS_OPERATOR = Kinds(
    Module("prometheus-operator", "github.com/prometheus-operator/prometheus-operator", {}, takes="seconds"),
    "example/prometheus-operator-crd",
    ("monitoring.coreos.com_podmonitors.yaml", "monitoring.coreos.com_prometheusrules.yaml"),
)


def definitions(kinds: Kinds) -> Path:
    """A folder of these files, fetched first where the cache has none. Raises NodeError."""
    module = kinds.module

    def fetch(folder: Path) -> None:
        say(f"fetching the kinds of {module.folder} {module.version} (once) …")
        words: list[str | Path] = [go_program(), "mod", "download", "-json", module.requires]
        told = run(words, cwd=MODULES / module.folder, env={**os.environ, "GOFLAGS": "-mod=readonly"})
        folder.mkdir()
        for name in kinds.names:
            # Go's own copies, and their folder, can be read alone.
            (folder / name).write_bytes((Path(json.loads(told)["Dir"]) / kinds.folder / name).read_bytes())

    return make_once(cache_dir() / f"{module.folder}-{module.version}" / "definitions", fetch)
