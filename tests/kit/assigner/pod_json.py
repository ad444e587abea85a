"""A pod's JSON as the assigner reads it."""

from typing import Any

from sharemgr.cluster.state.pods import SharePod, parse_pod

PERCENT, MEMORY = "edge/gpu-percent", "edge/gpu-memory-mib"


def container(name: str, percent: object, memory_mib: object = None, **others: object) -> dict[str, Any]:
    limits = {PERCENT: percent} if memory_mib is None else {PERCENT: percent, MEMORY: memory_mib}
    return {"name": name, "resources": {"limits": limits}, **others}


def pod(*containers: object, init: object = (), **others: Any) -> SharePod:
    return parse_pod(pod_json(*containers, init=list(init) if isinstance(init, tuple) else init, **others))


def pod_json(*containers: object, init: object = None, **metadata: object) -> dict[str, Any]:
    named = {"uid": "u", "namespace": "d", "name": "p", **metadata}
    return {"metadata": named, "spec": {"initContainers": init, "containers": list(containers)}}


def sidecar(name: str, percent: object, memory_mib: object = None) -> dict[str, Any]:
    return container(name, percent, memory_mib, restartPolicy="Always")


def asking(cpu: str = "0", memory: str = "0", **others: object) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}, **others}
