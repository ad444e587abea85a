"""Pods as the assigner knows them, parsed from their plain JSON. What is impossible is told as the pod's fault, never
guessed at."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from edgeshare.contract.accelerator_kind import KINDS, AcceleratorKind
from edgeshare.contract.assignment import Assignment, assigned_devices, parse_assignment, write_assignment
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.labels import label_value
from edgeshare.contract.lifetime import PHASES_OVER
from edgeshare.contract.names import (
    GPU_AFFINITY,
    GPU_ASSIGNMENT,
    GPU_EXCLUSION,
    GPU_MODEL,
    SHARE_CLASS,
)
from edgeshare.contract.share_class import LATENCY
from edgeshare.contract.units import parse_request_percent, peak
from edgeshare.kube.objects.pod_containers import Container, mapping, text
from edgeshare.kube.objects.pod_containers import containers as containers_of
from sharemgr.cluster.state.asks import KNOWN, Asking, asks_of
from sharemgr.cluster.state.cores import Cores, parse_cores
from sharemgr.cluster.state.request import Ask, Program, Request

Json = dict[str, Any]

MODELS_MAX = 16
CONTAINERS_MAX = 1_000
"""Of a pod, and of init containers as many. Each costs the loop some 17 µs at each look at its pod."""

_Quantities = tuple[tuple[str, str], ...]
_Asked = tuple[tuple[Ask, ...], tuple[tuple[Asking, ...], ...], Cores]


class SharePod(NamedTuple):
    """A pod, as far as it has to do with accelerators."""

    uid: str
    namespace: str
    name: str
    version: str = ""
    """The API server's, of what is known of it."""
    node: str = ""
    """Empty until it is bound."""
    priority: int = 0
    is_over: bool = False
    request: Request = Request(())
    containers: tuple[tuple[Asking, ...], ...] = ()
    """Those that each ask of the request is for."""
    assignment: str | None = None
    """As it is written at the pod."""
    nominated: str = ""
    """The node on which pods were made to leave for it."""
    fault: str = ""
    """Why what it asks for can never be had; then the request is empty."""

    @property
    def asks(self) -> bool:
        """Whether it asks for devices, be it in vain."""
        return bool(self.request.asks or self.fault)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def assign(self, devices: Sequence[Sequence[str]]) -> str:
        """The annotation that gives each ask of the request these devices."""
        assignment: dict[Accelerator, dict[str, tuple[str, ...]]] = {}
        for containers, ids in zip(self.containers, devices, strict=True):
            for each in containers:
                assignment.setdefault(each.kind, {})[each.name] = tuple(ids[: each.ask.devices])
        return write_assignment(assignment)

    def assigned(self) -> list[list[tuple[Asking, tuple[str, ...]]]]:
        """Each container's devices, as the annotation says, by ask. A kind of which it names none was left to the
        node. Raises InvalidRequest where there is no annotation, or it says what cannot be."""
        if self.assignment is None:
            raise InvalidRequest(f"pod {self} is bound to node {self.node} without annotation {GPU_ASSIGNMENT}")
        assignment: Assignment = parse_assignment(self.assignment)
        return [
            [(each, assigned_devices(assignment, each.name, each.percent, KINDS[each.kind])) for each in containers]
            for containers in self.containers
            if containers[0].kind in assignment
        ]


def parse_pod(
    pod: object,
    bound: Callable[[str], SharePod | None] = lambda uid: None,
    reserved: Callable[[str], SharePod | None] = lambda uid: None,
) -> SharePod:
    """Of a pod's JSON what the assigner looks at. Raises InvalidRequest for what is no pod; what a pod asks for in vain
    is its fault.

    ``bound``: the pod of a uid, where one is known to be bound. Of that only its end is news once it has an assignment,
    and most that a watch tells is of such pods. ``reserved``: the pod of a uid as a Binding writes it. One that is told
    with that node and assignment is that: a Binding is of one version, so that it asks for the same."""
    if not isinstance(pod, dict):
        raise InvalidRequest(f"expected a pod, found a {type(pod).__name__}")
    metadata, spec, status = (mapping(pod, key) for key in ("metadata", "spec", "status"))
    uid, name = text(metadata, "uid"), text(metadata, "name")
    if not uid or not name:
        raise InvalidRequest("expected a pod with metadata.uid and metadata.name")
    is_over, before = status.get("phase") in PHASES_OVER, bound(uid)
    if before is not None and before.assignment is not None:
        return before._replace(is_over=True) if is_over else before
    annotations, labels = (mapping(metadata, key) for key in ("annotations", "labels"))
    told = spec.get("nodeName"), annotations.get(GPU_ASSIGNMENT)
    written = reserved(uid) if all(told) and not is_over else None
    if written is not None and told == (written.node, written.assignment):
        return written
    namespace, version = text(metadata, "namespace"), text(metadata, "resourceVersion")
    priority = spec.get("priority")
    request, fault = Request(()), ""
    containers: tuple[tuple[Asking, ...], ...] = ()
    try:
        request, containers = _request(namespace, spec, annotations, labels)
    except InvalidRequest as error:
        fault = str(error)
    return SharePod(
        uid,
        namespace,
        name,
        version,
        node=text(spec, "nodeName"),
        priority=priority if isinstance(priority, int) else 0,
        is_over=is_over,
        request=request,
        containers=containers,
        assignment=None if annotations.get(GPU_ASSIGNMENT) is None else str(annotations[GPU_ASSIGNMENT]),
        nominated=text(status, "nominatedNodeName"),
        fault=fault,
    )


def _request(
    namespace: str, spec: Mapping[str, Any], annotations: Mapping[str, Any], labels: Mapping[str, Any]
) -> tuple[Request, tuple[tuple[Asking, ...], ...]]:
    """What a pod asks for, and for which containers."""
    for key in ("initContainers", "containers"):
        if isinstance(spec.get(key), list) and len(spec[key]) > CONTAINERS_MAX:
            raise InvalidRequest(
                f"spec.{key} has {len(spec[key])} containers: no node runs over {CONTAINERS_MAX} of a pod"
            )
    affinity = labels.get(GPU_AFFINITY)
    asks, containers, cores = _asked(spec, bool(affinity))
    request = Request(
        asks,
        cores.cpu_milli,
        cores.ram_mib,
        models=_models(annotations.get(GPU_MODEL)),
        affinity=f"{namespace}/{affinity}" if affinity else "",
        exclusion=str(labels.get(GPU_EXCLUSION) or ""),
        # No profiles are kept yet that a key could be of. What is no class is refused where it is served.
        program=Program(latency=annotations.get(SHARE_CLASS) == LATENCY),
    )
    return request, containers


def _asked(spec: Mapping[str, Any], together: bool) -> _Asked:
    """What its containers ask for."""
    every = list(containers_of(spec))
    if len(every) == 1 and every[0].runs_along and not spec.get("resources") and not spec.get("overhead"):
        (alone,) = every
        limits, requests = tuple(alone.limits.items()), tuple(alone.requests.items())
        # Of a number it would not be told whether it is one, or true.
        if {type(quantity) for _, quantity in (*limits, *requests)} <= {str}:
            return _asked_alone(alone.name, limits, requests, together)
    return *_asks(every, together), _cores(spec, every)


@lru_cache(KNOWN)
def _asked_alone(name: str, limits: _Quantities, requests: _Quantities, together: bool) -> _Asked:
    """As ``_asked``, of a pod of one container: those of a job ask for the same."""
    every = [Container(name, dict(limits), dict(requests), True)]
    return *_asks(every, together), _cores({}, every)


def _asks(every: Sequence[Container], together: bool) -> tuple[tuple[Ask, ...], tuple[tuple[Asking, ...], ...]]:
    """What is asked of all kinds of device, one after the other, and for which containers."""
    asking: dict[Accelerator, list[Asking]] = {}
    for each in every:
        for kind in KINDS.values() if each.limits else ():
            if kind.resource in each.limits:
                asked = _asking(kind, each)
                if asked.percent:
                    asking.setdefault(kind.accelerator, []).append(asked)
    asks: tuple[Ask, ...] = ()
    containers: tuple[tuple[Asking, ...], ...] = ()
    for kind in KINDS.values():
        if kind.accelerator in asking:
            more = asks_of(tuple(asking[kind.accelerator]), together and kind.is_chosen_by_wish)
            asks, containers = asks + more[0], containers + more[1]
    return asks, containers


def _cores(spec: Mapping[str, Any], every: Sequence[Container]) -> Cores:
    """As kube-scheduler counts them (component-helpers, resource/helpers.go): what its containers ask for at a time, or
    the pod as a whole, and its overhead."""
    sizes = [(parse_cores(each.requests, f"container {each.name}"), each.runs_along) for each in every]
    if len(sizes) == 1:  # of nearly all
        cpu_milli, ram_mib = sizes[0][0].cpu_milli, sizes[0][0].ram_mib
    else:
        cpu_milli = peak((size.cpu_milli, runs_along) for size, runs_along in sizes)
        ram_mib = peak((size.ram_mib, runs_along) for size, runs_along in sizes)
    of_all = mapping(mapping(spec, "resources"), "requests")
    if of_all:
        whole = parse_cores(of_all, "spec.resources")
        cpu_milli = whole.cpu_milli if "cpu" in of_all else cpu_milli
        ram_mib = whole.ram_mib if "memory" in of_all else ram_mib
    overhead = mapping(spec, "overhead")
    cores = Cores(cpu_milli, ram_mib)
    return cores + parse_cores(overhead, "spec.overhead") if overhead else cores


def _asking(kind: AcceleratorKind, container: Container) -> Asking:
    percent = container.asked(kind.resource)
    if percent:
        try:
            parse_request_percent(percent)
        except InvalidRequest as error:
            raise InvalidRequest(f"container {container.name}: {kind.resource}: {error}") from error
    return Asking(container.name, percent, container.cap_mib(kind), container.runs_along, kind.accelerator)


def _models(text: object) -> frozenset[str]:
    if text is None:
        return frozenset()
    models = [model.strip() for model in str(text).split(",")]
    for model in models:
        if not model or label_value(model) != model:
            raise InvalidRequest(
                f"annotation {GPU_MODEL} is {str(text)[:80]!r}: expected models as the label edge/gpu.product spells "
                "them, separated by commas"
            )
    if len(models) > MODELS_MAX:
        raise InvalidRequest(f"annotation {GPU_MODEL} names {len(models)} models: name at most {MODELS_MAX}")
    return frozenset(models)
