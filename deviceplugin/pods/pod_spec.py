"""What a pod asks for, parsed strictly from its plain JSON: a wrong value is refused, never guessed at."""

import re
from collections.abc import Mapping
from typing import Any

from deviceplugin.units.ledger import SHARE_CLASSES, ShareClass, Terms
from edgeshare.contract.accelerator_kind import GPU, RESOURCES, AcceleratorKind
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.lifetime import PHASES_OVER
from edgeshare.contract.names import GPU_ASSIGNMENT, GPU_MEMORY_MIB, GPU_PERCENT_LIMIT, SHARE_CLASS
from edgeshare.contract.quantity import memory_mib, whole_number
from edgeshare.contract.units import UNITS_PER_DEVICE, check_limit_percent, parse_request_percent

ANNOTATIONS = (GPU_ASSIGNMENT, GPU_PERCENT_LIMIT, SHARE_CLASS)


def slim(pod: dict[str, Any]) -> dict[str, Any]:
    """Of a pod's plain JSON what the functions here look at: some hundred bytes of ten thousand."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    return {
        "metadata": {
            **{key: metadata[key] for key in ("namespace", "name", "uid")},
            "annotations": {key: annotations[key] for key in ANNOTATIONS if key in annotations},
        },
        "spec": {
            "nodeName": spec.get("nodeName") or "",
            **{key: [_slim(each) for each in spec.get(key) or []] for key in ("initContainers", "containers")},
        },
        "status": {"phase": (pod.get("status") or {}).get("phase") or ""},
    }


def assignment_text(pod: dict[str, Any]) -> str | None:
    """The annotation `edge/gpu-assignment`, if there is one."""
    text = (pod["metadata"].get("annotations") or {}).get(GPU_ASSIGNMENT)
    return None if text is None else str(text)


def asking_containers(pod: dict[str, Any], kind: AcceleratorKind = GPU) -> list[tuple[str, int, bool]]:
    """Each container that asks for units of this kind, in the order in which the kubelet admits them: its name, how
    many it asks for, and whether PodResources lists it, as it does all but plain init containers. One that asks for no
    number is left out."""
    found = []
    mains = len((pod.get("spec") or {}).get("containers") or [])
    containers = _containers(pod)
    for place, container in enumerate(containers):
        try:
            percent = _percent(container, kind)
        except InvalidRequest:
            continue
        if percent:
            listed = place >= len(containers) - mains or container.get("restartPolicy") == "Always"
            found.append((str(container["name"]), percent, listed))
    return found


def parse_terms(pod: dict[str, Any], container: str, units: int, kind: AcceleratorKind = GPU) -> Terms:
    """What this container of the pod asks for; ``units`` is how many the kubelet gave it.

    Raises InvalidRequest, in one line that names the container or the annotation.
    """
    limits = _limits(pod, container)
    percent = whole_number(limits.get(kind.resource, "0"), kind.resource)
    if percent != units:
        raise InvalidRequest(
            f"container {container} asks for {percent} of {kind.resource}, but the kubelet gave it {units}: "
            "make the pod anew"
        )
    _, request_percent = parse_request_percent(percent)
    cap_mib = 0
    if kind.has_memory and GPU_MEMORY_MIB in limits:
        cap_mib = memory_mib(limits[GPU_MEMORY_MIB], f"container {container}: {GPU_MEMORY_MIB}")
    annotations = pod.get("metadata", {}).get("annotations") or {}
    shared = request_percent < UNITS_PER_DEVICE
    return Terms(
        request_percent=request_percent,
        limit_percent=_limit(annotations, request_percent) if shared else 0,
        share_class=_share_class(annotations),
        memory_mib=cap_mib,
        hooked=shared or cap_mib > 0 or _is_shared_beside(limits, kind),
    )


def init_container(pod: dict[str, Any], units: int, kind: AcceleratorKind = GPU) -> str | None:
    """The pod's first plain init container that asks for just as many units."""
    for container in pod.get("spec", {}).get("initContainers") or []:
        if container.get("restartPolicy") != "Always" and _percent(container, kind) == units:
            return str(container["name"])
    return None


def asks_later(pod: dict[str, Any], kind: AcceleratorKind = GPU) -> bool:
    """Whether any container that PodResources lists (sidecars too) asks for units."""
    spec = pod.get("spec", {})
    sidecars = [c for c in spec.get("initContainers") or [] if c.get("restartPolicy") == "Always"]
    return any(_percent(container, kind) for container in [*(spec.get("containers") or []), *sidecars])


def is_over(pod: dict[str, Any] | None, pod_uid: str) -> bool:
    """Whether what is read under a pod's name shows that the pod of that uid has ended."""
    if pod is None or (pod_uid and pod["metadata"]["uid"] != pod_uid):
        return True
    return pod.get("status", {}).get("phase") in PHASES_OVER


def _slim(container: dict[str, Any]) -> dict[str, Any]:
    limits = (container.get("resources") or {}).get("limits") or {}
    kept_limits = {key: limits[key] for key in (*RESOURCES, GPU_MEMORY_MIB) if key in limits}
    kept = {"name": container["name"], "resources": {"limits": kept_limits}}
    policy = container.get("restartPolicy")
    return kept if policy is None else {**kept, "restartPolicy": policy}


def _limits(pod: dict[str, Any], name: str) -> dict[str, str]:
    for container in _containers(pod):
        if container.get("name") == name:
            return dict((container.get("resources") or {}).get("limits") or {})
    raise InvalidRequest(f"the pod has no container {name}: make the pod anew")


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    spec = pod.get("spec", {})
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def _is_shared_beside(limits: Mapping[str, str], kind: AcceleratorKind) -> bool:
    """Whether the container has a part of a device of another kind. It has one preload file: both say the same."""
    others = (whole_number(limits.get(resource, "0"), resource) for resource in RESOURCES if resource != kind.resource)
    return any(percent % UNITS_PER_DEVICE for percent in others)


def _percent(container: dict[str, Any], kind: AcceleratorKind) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return whole_number(limits.get(kind.resource, "0"), kind.resource)


def _limit(annotations: dict[str, str], request_percent: int) -> int:
    text = annotations.get(GPU_PERCENT_LIMIT)
    if text is None:
        return 0
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise InvalidRequest(f"annotation {GPU_PERCENT_LIMIT} is {text[:40]!r}: expected a number from 1 to 100")
    try:
        return check_limit_percent(int(text), request_percent)
    except InvalidRequest as error:
        raise InvalidRequest(f"annotation {GPU_PERCENT_LIMIT}: {error}") from error


def _share_class(annotations: dict[str, str]) -> ShareClass:
    text = annotations.get(SHARE_CLASS, "batch")
    try:
        return SHARE_CLASSES[text]
    except KeyError:
        raise InvalidRequest(f"annotation {SHARE_CLASS} is {text[:40]!r}: expected latency or batch") from None
