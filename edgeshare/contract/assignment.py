"""Which devices each container of a pod is to have: the annotation ``edge/gpu-assignment``, compact JSON such as
``{"main":["GPU-…"],"camera":{"edge/tpu-percent":["0000:03:00.0"]}}``. A list is of GPUs; a container that has others,
too, has an object with a list for each resource.

The cluster part writes it with the pod's Binding, the device plugin where there is no cluster part. Whoever reads it
trusts nothing: a right to write it can be given away.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from edgeshare.contract.accelerator_kind import GPU, KINDS, AcceleratorKind
from edgeshare.contract.devices import Accelerator, is_device_id
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import GPU_ASSIGNMENT
from edgeshare.contract.object_names import LABEL
from edgeshare.contract.units import MAX_DEVICES_PER_ALLOCATION, parse_request_percent

Assignment = Mapping[Accelerator, Mapping[str, tuple[str, ...]]]
"""Kind → container → ids of its devices. It has no kind of which no container has a device."""

MAX_BYTES = 16_384
"""Room for 16 containers of 16 GPUs and 16 EdgeTPUs each; all annotations of a pod together may have 256 KiB
(apimachinery, api/validation)."""

KNOWN = 256
"""Annotations: each is read several times while its pod is bound and comes to its node, and seldom later."""

CONTAINER = re.compile(LABEL)
"""What the API server takes for a container's name."""

_KIND_OF = {kind.resource: kind.accelerator for kind in KINDS.values()}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name stands there twice")
    return content


# Made once: that takes longer than what they are used for.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


@lru_cache(KNOWN)
def parse_assignment(text: str) -> Assignment:
    """The annotation's value as data; raises InvalidRequest, in one line, for what says no devices, or not whose."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise _wrong(f"has more than {MAX_BYTES} bytes")
    try:
        content = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise _wrong(f"is no JSON: {text[:40]!r}") from None
    if not isinstance(content, dict) or not content:
        raise _wrong(f"names no container: {text[:40]!r}")
    assignment: dict[Accelerator, dict[str, tuple[str, ...]]] = {}
    for name, devices in content.items():
        for accelerator, ids in _of_container(_container(name), devices).items():
            assignment.setdefault(accelerator, {})[name] = ids
    if len(assignment) > 1:
        by_kind = [{each for ids in containers.values() for each in ids} for containers in assignment.values()]
        if len(set[str]().union(*by_kind)) != sum(map(len, by_kind)):
            raise _wrong("names a device as one of several kinds")
    return assignment


def write_assignment(assignment: Assignment) -> str:
    """The annotation's value, the same for the same assignment."""
    content: dict[str, dict[str, list[str]]] = {}
    for accelerator, containers in assignment.items():
        for name, ids in containers.items():
            content.setdefault(name, {})[KINDS[accelerator].resource] = list(ids)
    short = {name: lists[GPU.resource] if lists.keys() == {GPU.resource} else lists for name, lists in content.items()}
    return _ENCODER.encode(short)


def assigned_devices(
    assignment: Assignment, container: str, percent: int, kind: AcceleratorKind = GPU
) -> tuple[str, ...]:
    """The devices of this kind of a container that asks for so many units; raises InvalidRequest where the assignment
    names none for it, or not as many as it asks for."""
    devices, _ = parse_request_percent(percent)
    ids = assignment.get(kind.accelerator, {}).get(container)
    if ids is None:
        raise _wrong(f"names no {kind.word} for container {container}")
    if len(ids) != devices:
        raise _wrong(f"names {len(ids)} {kind.word}s for container {container}, whose {percent} units are of {devices}")
    return ids


def _container(name: str) -> str:
    if not CONTAINER.fullmatch(name):
        raise _wrong(f"names what cannot be a container: {name[:40]!r}")
    return name


def _of_container(container: str, devices: object) -> dict[Accelerator, tuple[str, ...]]:
    lists = devices if isinstance(devices, dict) and devices else {GPU.resource: devices}
    for resource in lists:
        if resource not in _KIND_OF:
            raise _wrong(f"names what is not shared for container {container}: {resource[:40]!r}")
    return {_KIND_OF[resource]: _devices(container, ids) for resource, ids in lists.items()}


def _devices(container: str, ids: object) -> tuple[str, ...]:
    if not isinstance(ids, list) or not 0 < len(ids) <= MAX_DEVICES_PER_ALLOCATION:
        raise _wrong(f"has no list of 1 to {MAX_DEVICES_PER_ALLOCATION} devices for container {container}")
    for each in ids:
        if not isinstance(each, str) or not is_device_id(each):
            raise _wrong(f"names what cannot be a device for container {container}: {repr(each)[:80]}")
    if len(set(ids)) != len(ids):
        raise _wrong(f"names a device twice for container {container}")
    return tuple(ids)


def _wrong(what: str) -> InvalidRequest:
    return InvalidRequest(f"annotation {GPU_ASSIGNMENT} {what}: make the pod anew, without it")
