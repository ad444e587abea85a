"""The configurations of container runtimes and of NVIDIA's toolkit, as they lie on a node."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from edgeshare.cli.doctor.facts import TAKES_VARIABLES, Runtime, Toolkit
from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.tree import Tree

CONTAINERD = (
    "/etc/containerd/config.toml",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    "/var/snap/microk8s/current/args/containerd.toml",
)
CRI = {"io.containerd.cri.v1.runtime": True, "io.containerd.grpc.v1.cri": False}
"""containerd's part for the kubelet, as version 2 calls it and as those before do, and whether it looks at names of CDI
where nothing is said of it (containerd, docs/cri/config.md)."""

CRIO, CRIO_MORE = "/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*"
TOOLKIT = "/etc/nvidia-container-runtime/config.toml"


def read_runtimes(tree: Tree) -> Iterator[Runtime]:
    """Each that has a configuration here."""
    for path in CONTAINERD:
        try:
            config = _containerd(tree, path)
        except Unavailable as error:
            yield Runtime(path, error=str(error))
            continue
        if config is not None:
            plugins = _table(config, "plugins")
            name = next((each for each in CRI if each in plugins), None)
            cri = _table(plugins, name or "")
            parts = _table(cri, "containerd")
            default = str(parts.get("default_runtime_name", "runc"))
            with_cdi = cri.get("enable_cdi", CRI[name] if name else config.get("version", 1) >= 3)
            yield Runtime(path, "", tuple(_table(parts, "runtimes")), default, bool(with_cdi))
    yield from _crio(tree)


def read_toolkit(tree: Tree) -> Toolkit | None:
    """None where it is not installed."""
    try:
        config = _toml(tree, TOOLKIT)
    except Unavailable as error:
        return Toolkit(TOOLKIT, error=str(error))
    return None if config is None else Toolkit(TOOLKIT, takes_variables=bool(config.get(TAKES_VARIABLES, True)))


def _crio(tree: Tree) -> Iterator[Runtime]:
    try:
        paths = [path for path in (CRIO, *tree.matches(CRIO_MORE)) if tree.exists(path)]
        merged: dict[str, Any] = {}
        for path in paths:
            merged = _merged(merged, _toml(tree, path) or {})
    except Unavailable as error:
        yield Runtime(CRIO, error=str(error))
        return
    if paths:
        runtime = _table(_table(merged, "crio"), "runtime")
        yield Runtime(paths[0], "", tuple(_table(runtime, "runtimes")), str(runtime.get("default_runtime", "")))


def _containerd(tree: Tree, path: str) -> dict[str, Any] | None:
    """With what it imports, which overrides it."""
    config = _toml(tree, path)
    if config is None:
        return None
    imports = config.get("imports", [])
    for pattern in imports if isinstance(imports, list) else []:
        for other in tree.matches(str(pattern)):
            config = _merged(config, _toml(tree, other) or {})
    return config


def _toml(tree: Tree, path: str) -> dict[str, Any] | None:
    content = tree.read(path)
    try:
        return None if content is None else tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"it is no TOML: {error}") from error


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        name for name in under.keys() & over.keys() if isinstance(under[name], dict) and isinstance(over[name], dict)
    }
    return {**under, **over, **{name: _merged(under[name], over[name]) for name in both}}


def _table(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table; empty where there is none of that name, or something else."""
    found = of.get(name)
    return found if isinstance(found, dict) else {}
