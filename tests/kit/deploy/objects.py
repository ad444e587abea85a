"""Objects that the chart renders to."""

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
Render = Callable[..., list[Object]]

UNPRIVILEGED = {
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context of an ordinary user with no power, who writes nothing into his image."""


def only(objects: list[Object], kind: str, name: str = "edgeshare") -> Object:
    """The one object of a kind and a name: with nothing else named, of share manager and device plugin."""
    (found,) = (each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name)
    return found
