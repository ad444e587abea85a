"""What a pod asks for, parsed strictly from its plain JSON: a wrong value is refused, never guessed at."""

import re
from collections.abc import Iterator
from typing import Any

from deviceplugin.units.ledger import Terms
from edgeshare.contract.accelerator_kind import GPU, RESOURCES, AcceleratorKind
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.lifetime import PHASES_OVER
from edgeshare.contract.names import GPU_ASSIGNMENT, GPU_MEMORY_MIB, GPU_PERCENT_LIMIT, SHARE_CLASS
from edgeshare.contract.share_class import BATCH, BY_WORD, ShareClass
from edgeshare.contract.units import UNITS_PER_DEVICE, check_limit_percent, parse_request_percent
from edgeshare.kube.objects.pod_containers import Container, containers, mapping

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
    for each in _containers(pod):
        try:
            percent = each.asked(kind.resource)
        except InvalidRequest:
            continue
        if percent:
            found.append((each.name, percent, each.runs_along))
    return found


def parse_terms(pod: dict[str, Any], container: str, units: int, kind: AcceleratorKind = GPU) -> Terms:
    """What this container of the pod asks for; ``units`` is how many the kubelet gave it.

    Raises InvalidRequest, in one line that names the container or the annotation.
    """
    asking = _container(pod, container)
    percent = asking.asked(kind.resource)
    if percent != units:
        raise InvalidRequest(
            f"container {container} asks for {percent} of {kind.resource}, but the kubelet gave it {units}: "
            "make the pod anew"
        )
    _, request_percent = parse_request_percent(percent)
    cap_mib = asking.cap_mib(kind)
    annotations = pod.get("metadata", {}).get("annotations") or {}
    shared = request_percent < UNITS_PER_DEVICE
    return Terms(
        request_percent=request_percent,
        limit_percent=_limit(annotations, request_percent) if shared else 0,
        share_class=_share_class(annotations),
        memory_mib=cap_mib,
        hooked=shared or cap_mib > 0 or _is_shared_beside(asking, kind),
    )


def init_container(pod: dict[str, Any], units: int, kind: AcceleratorKind = GPU) -> str | None:
    """The pod's first plain init container that asks for just as many units."""
    asking = (each.name for each in _containers(pod) if not each.runs_along and each.asked(kind.resource) == units)
    return next(asking, None)


def asks_later(pod: dict[str, Any], kind: AcceleratorKind = GPU) -> bool:
    """Whether any container that PodResources lists (sidecars too) asks for units."""
    return any(each.runs_along and each.asked(kind.resource) for each in _containers(pod))


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


def _containers(pod: dict[str, Any]) -> Iterator[Container]:
    return containers(mapping(pod, "spec"))


def _container(pod: dict[str, Any], name: str) -> Container:
    for each in _containers(pod):
        if each.name == name:
            return each
    raise InvalidRequest(f"the pod has no container {name}: make the pod anew")


def _is_shared_beside(asking: Container, kind: AcceleratorKind) -> bool:
    """Whether the container has a part of a device of another kind. It has one preload file: both say the same."""
    return any(asking.asked(other) % UNITS_PER_DEVICE for other in RESOURCES if other != kind.resource)


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
    text = annotations.get(SHARE_CLASS, BATCH)
    try:
        return BY_WORD[text]
    except KeyError:
        raise InvalidRequest(f"annotation {SHARE_CLASS} is {text[:40]!r}: expected latency or batch") from None
