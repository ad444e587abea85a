"""A pod's containers, from its plain JSON: in which order the kubelet admits them, which of them run along with others,
and what each asks for of accelerators. Pure; what cannot be is said, never guessed at."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from edgeshare.contract.accelerator_kind import AcceleratorKind
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import GPU_MEMORY_MIB
from edgeshare.contract.quantity import memory_mib, whole_number

TEXT_MAX = 253
"""Characters of a name, and more than any uid has."""


class Container(NamedTuple):
    """What a container asks for, by resource, as its pod says."""

    name: str
    limits: Mapping[str, Any]
    requests: Mapping[str, Any]
    runs_along: bool
    """With those after it, as sidecars do, too. A plain init container does not: it is over before the next one starts,
    which takes over its units, and the kubelet's PodResources never lists it."""

    def asked(self, resource: str) -> int:
        """How much it asks for of what is counted in whole numbers. Raises InvalidRequest for no such number."""
        return whole_number(self.limits.get(resource, 0), f"container {self.name}: {resource}")

    def cap_mib(self, kind: AcceleratorKind) -> int:
        """The cap on memory of each device that it names, 0 where it names none. Raises InvalidRequest for what no
        device has."""
        if not kind.has_memory or GPU_MEMORY_MIB not in self.limits:
            return 0
        return memory_mib(self.limits[GPU_MEMORY_MIB], f"container {self.name}: {GPU_MEMORY_MIB}")


def containers(spec: Mapping[str, Any]) -> Iterator[Container]:
    """The containers of a pod's spec, in the order in which the kubelet admits them. Raises InvalidRequest for what
    is no spec."""
    for key in ("initContainers", "containers"):
        every = spec.get(key) or []
        if not isinstance(every, list):
            raise InvalidRequest(f"expected a list at spec.{key}, found a {type(every).__name__}")
        for each in every:
            if not isinstance(each, dict):
                raise InvalidRequest(f"expected containers in spec.{key}, found a {type(each).__name__}")
            resources = mapping(each, "resources")
            runs_along = key == "containers" or each.get("restartPolicy") == "Always"
            yield Container(
                text(each, "name"), mapping(resources, "limits"), mapping(resources, "requests"), runs_along
            )


def mapping(thing: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object that is a part of one, empty where it is missing. Raises InvalidRequest for what is none."""
    found = thing.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidRequest(f"expected an object at {key}, found a {type(found).__name__}")
    return found


def text(thing: Mapping[str, Any], key: str) -> str:
    """A text of an object, empty where it is missing. Raises InvalidRequest for what no name or uid is."""
    found = thing.get(key)
    if found is None:
        return ""
    if not isinstance(found, str) or len(found) > TEXT_MAX or not found.isprintable():
        raise InvalidRequest(f"expected a text of at most {TEXT_MAX} printable characters at {key}")
    return found
