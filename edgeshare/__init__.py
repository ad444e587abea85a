"""edgeshare lets several pods share one accelerator. This package is what its parts meet in.

``contract/`` is what they agree on: begin there. ``inventory/`` finds a machine's devices, ``kube/`` asks the API
server, ``kubelet/`` and ``v1/`` are gRPC interfaces, ``http/`` serves pages, and ``cli/`` is the command, which nothing
imports. ``slices`` is for applications.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeshare.slices import slice as slice  # noqa: A004

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Loaded when it is used: only applications do, and every part of edgeshare imports this package.
    if name == "slice":
        from importlib import import_module  # noqa: PLC0415

        return import_module("edgeshare.slices").slice
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
