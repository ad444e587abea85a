"""Which fields the assigner reads of the Kubernetes objects that a watch, or kube-scheduler, tells of in full. A pod is
7 kB of JSON, and these are a tenth of it. What a field may be, and what is wrong with one, is said where it is parsed
(``pods``, ``accelerators``, ``cores``): each may be missing, and null."""

from typing import Any, TypedDict

from edgeshare.contract.accelerator_kind import RESOURCES
from edgeshare.contract.names import (
    GPU_AFFINITY,
    GPU_ASSIGNMENT,
    GPU_EXCLUSION,
    GPU_MEMORY_MIB,
    GPU_MODEL,
    SHARE_CLASS,
)

_Annotations = TypedDict("_Annotations", {GPU_ASSIGNMENT: Any, GPU_MODEL: Any, SHARE_CLASS: Any}, total=False)  # type: ignore[misc]
_Labels = TypedDict("_Labels", {GPU_AFFINITY: Any, GPU_EXCLUSION: Any}, total=False)  # type: ignore[misc]
_Limits = TypedDict("_Limits", dict.fromkeys((*RESOURCES, GPU_MEMORY_MIB), Any), total=False)  # type: ignore[misc]


class _Cores(TypedDict, total=False):
    cpu: Any
    memory: Any


class _Resources(TypedDict, total=False):
    limits: _Limits | None
    requests: _Cores | None


class _Container(TypedDict, total=False):
    name: Any
    resources: _Resources | None
    restartPolicy: Any


class _Metadata(TypedDict, total=False):
    name: Any
    namespace: Any
    uid: Any
    resourceVersion: Any
    annotations: _Annotations | None
    labels: _Labels | None


class _Spec(TypedDict, total=False):
    nodeName: Any
    priority: Any
    initContainers: list[_Container] | None
    containers: list[_Container] | None
    resources: _Resources | None
    overhead: _Cores | None


class _Status(TypedDict, total=False):
    phase: Any
    nominatedNodeName: Any


class PodFields(TypedDict, total=False):
    """The fields of a pod that are read."""

    metadata: _Metadata | None
    spec: _Spec | None
    status: _Status | None


class _Named(TypedDict, total=False):
    name: Any
    resourceVersion: Any


class AcceleratorNodeFields(TypedDict, total=False):
    """The fields of an AcceleratorNode that are read."""

    metadata: _Named
    status: Any


class _Allocatable(TypedDict, total=False):
    allocatable: Any


class NodeFields(TypedDict, total=False):
    """The fields of a Node that are read."""

    metadata: _Named
    status: _Allocatable
