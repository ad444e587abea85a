"""Which devices each container of a pod is to have: the annotation ``edge/gpu-assignment``, compact JSON such as
``{"main":["GPU-…"]}``.

The cluster part writes it with the pod's Binding, the device plugin where there is no cluster part. Whoever reads it
trusts nothing: a right to write it can be given away.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from edgeshare.contract.devices import is_device_id
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import GPU_ASSIGNMENT
from edgeshare.contract.units import MAX_DEVICES_PER_ALLOCATION, parse_request_percent

Assignment = Mapping[str, tuple[str, ...]]
"""Container → ids of its devices."""

MAX_BYTES = 16_384
"""Room for 16 containers of 16 devices each; all annotations of a pod together may have 256 KiB (apimachinery,
api/validation)."""

CONTAINER = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A DNS label: what the API server takes for a container's name."""


def parse_assignment(text: str) -> Assignment:
    """The annotation's value as data; raises InvalidRequest, in one line, for what ``write_assignment`` never
    writes."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise _wrong(f"has more than {MAX_BYTES} bytes")
    try:
        content = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise _wrong(f"is no JSON: {text[:40]!r}") from None
    if not isinstance(content, dict) or not content:
        raise _wrong(f"names no container: {text[:40]!r}")
    return {_container(name): _devices(name, ids) for name, ids in content.items()}


def write_assignment(assignment: Assignment) -> str:
    """The annotation's value, the same for the same assignment."""
    return json.dumps({name: list(ids) for name, ids in assignment.items()}, separators=(",", ":"), sort_keys=True)


def assigned_devices(assignment: Assignment, container: str, percent: int) -> tuple[str, ...]:
    """The devices of a container that asks for so many units; raises InvalidRequest where the assignment names none for
    it, or not as many as it asks for."""
    devices, _ = parse_request_percent(percent)
    ids = assignment.get(container)
    if ids is None:
        raise _wrong(f"names no device for container {container}")
    if len(ids) != devices:
        raise _wrong(f"names {len(ids)} devices for container {container}, whose {percent} units are of {devices}")
    return ids


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name stands there twice")
    return content


def _container(name: str) -> str:
    if not CONTAINER.fullmatch(name):
        raise _wrong(f"names what cannot be a container: {name[:40]!r}")
    return name


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
