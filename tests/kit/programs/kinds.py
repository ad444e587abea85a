"""Kinds of objects that others' releases bring, as their Go modules define them."""

import json
import os
from pathlib import Path

from tests.kit.processes.command import run, say
from tests.kit.programs.binaries import MODULES, Module
from tests.kit.programs.cache import cache_dir, make_once
from tests.kit.programs.golang import go_program

CERT_MANAGER = Module("cert-manager", "github.com/cert-manager/cert-manager", {}, takes="seconds")


def definitions(module: Module) -> Path:
    """A folder of the CustomResourceDefinitions of a module, fetched first where the cache has none. Raises
    NodeError."""

    def fetch(folder: Path) -> None:
        say(f"fetching the kinds of {module.folder} {module.version} (once) …")
        words: list[str | Path] = [go_program(), "mod", "download", "-json", module.requires]
        told = run(words, cwd=MODULES / module.folder, env={**os.environ, "GOFLAGS": "-mod=readonly"})
        folder.mkdir()
        for path in (Path(json.loads(told)["Dir"]) / "deploy/crds").glob("*.yaml"):
            # Go's own copies, and their folder, can be read alone.
            (folder / path.name).write_bytes(path.read_bytes())

    return make_once(cache_dir() / f"{module.folder}-{module.version}" / "definitions", fetch)
