"""Pods that are bound to this node, and those of their containers that are still to get units: who may be asking when
the kubelet asks, and which devices are spoken for.

A pod's assignment is what its annotation said when the pod was bound; later edits change nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deviceplugin.pods.pod_spec import asking_containers, assignment_text, is_over, parse_terms
from deviceplugin.units.ledger import Allocation, Owner, Terms
from deviceplugin.units.owners import Listing
from edgeshare.contract.accelerator_kind import GPU, AcceleratorKind
from edgeshare.contract.assignment import assigned_devices, parse_assignment
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import memory_cap_mib, parse_request_percent, peak

Name = tuple[str, str]
"""(namespace, name)"""


@dataclass
class BoundPod:
    """One pod of the node."""

    json: dict[str, Any]
    """As of now, slim."""
    bound: str | None
    """What the annotation `edge/gpu-assignment` said when the pod was bound."""
    ended: bool = False
    """It failed at its admission, or is gone, and the watch is still to tell."""

    @property
    def name(self) -> Name:
        """The pod's namespace and name."""
        return self.json["metadata"]["namespace"], self.json["metadata"]["name"]

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return str(self.json["metadata"]["uid"])

    @property
    def is_over(self) -> bool:
        """Whether none of its containers can start any more."""
        return self.ended or is_over(self.json, "")

    @property
    def edited(self) -> str | None:
        """What the annotation says now, where that is something else than when the pod was bound."""
        text = assignment_text(self.json)
        return text if text != self.bound else None


@dataclass(frozen=True)
class Applicant:
    """A container that asks for units and has none yet."""

    owner: Owner
    percent: int
    devices: tuple[str, ...] | None
    """Those that it is assigned; None where its pod has no assignment, or one that names no such devices."""
    terms: Terms | None
    """None where it asks for what cannot be, which its start will say."""
    fault: str = ""
    """Why its assignment cannot be read."""

    @property
    def is_assigned(self) -> bool:
        """Whether somebody chose its devices, be it in vain."""
        return self.devices is not None or bool(self.fault)


IsAllocated = Callable[[Owner], bool]


def allocated(allocations: Iterable[Allocation]) -> IsAllocated:
    """Whether a container has units, as far as was known when they were handed out or is known now."""
    known = [owner for each in allocations for owner in (each.owner, each.applicant) if owner is not None]
    uids = {(owner.pod_uid, owner.container) for owner in known if owner.pod_uid}
    names = {(owner.namespace, owner.pod, owner.container) for owner in known if not owner.pod_uid}

    def is_allocated(owner: Owner) -> bool:
        return (owner.pod_uid, owner.container) in uids or (owner.namespace, owner.pod, owner.container) in names

    return is_allocated


def applicants(pod: BoundPod, has_units: IsAllocated, kind: AcceleratorKind = GPU) -> list[Applicant]:
    """The pod's containers that are still to get units of this kind, in the order in which the kubelet admits them."""
    if pod.is_over:
        return []
    namespace, name = pod.name
    asking = [
        (Owner(namespace, name, container, pod.uid, listed), percent)
        for container, percent, listed in asking_containers(pod.json, kind)
    ]
    done = [place for place, (owner, _) in enumerate(asking) if has_units(owner)]
    return [_applicant(pod, owner, percent, kind) for owner, percent in asking[max(done, default=-1) + 1 :]]


def may_have(pod: BoundPod, size: int, has_units: IsAllocated, kind: AcceleratorKind = GPU) -> bool:
    """Whether any container of the pod may have been given so many units of which nobody knows yet whose they are. A
    plain init container has none of its own besides those of another one that asks for as many."""
    if pod.is_over:
        return False
    namespace, name = pod.name
    asking = [
        Owner(namespace, name, container, pod.uid, listed)
        for container, percent, listed in asking_containers(pod.json, kind)
        if percent == size
    ]
    lacking = [owner for owner in asking if not has_units(owner)]
    return any(owner.listed or len(lacking) == len(asking) for owner in lacking)


def is_past(pod: BoundPod, listing: Listing, has_units: IsAllocated, kind: AcceleratorKind = GPU) -> bool:
    """Whether the kubelet must mean another pod of this name: this one is over, or has units of which the kubelet knows
    nothing."""
    namespace, name = pod.name
    held = listing.get(pod.name, {})
    return pod.is_over or any(
        listed and container in held and not held[container] and has_units(Owner(namespace, name, container, pod.uid))
        for container, _, listed in asking_containers(pod.json, kind)
    )


def reserved_units(waiting: Iterable[Applicant]) -> dict[str, int]:
    """How many units of each device are assigned to these, each pod's in the order of their admission. Of a pod's plain
    init containers only one runs at a time, and the later ones take over its units."""
    return _reserved(waiting, lambda applicant, device_id: parse_request_percent(applicant.percent)[1])


def reserved_mib(waiting: Iterable[Applicant], devices: Mapping[str, Device]) -> dict[str, int]:
    """How much memory of each device, as far as it is there, is assigned to these, counted as ``reserved_units``
    does."""

    def cap_mib(applicant: Applicant, device_id: str) -> int:
        if device_id not in devices or applicant.terms is None:
            return 0
        terms = applicant.terms
        return memory_cap_mib(terms.memory_mib, devices[device_id].memory_mib, terms.request_percent)

    return _reserved(waiting, cap_mib)


def _reserved(waiting: Iterable[Applicant], size: Callable[[Applicant, str], int]) -> dict[str, int]:
    sizes: defaultdict[tuple[str, str], list[tuple[int, bool]]] = defaultdict(list)
    for applicant in waiting:
        for device_id in applicant.devices or ():
            sizes[applicant.owner.pod_uid, device_id].append((size(applicant, device_id), applicant.owner.listed))
    found: Counter[str] = Counter()
    for (_, device_id), of_pod in sizes.items():
        found[device_id] += peak(of_pod)
    return dict(found)


def _applicant(pod: BoundPod, owner: Owner, percent: int, kind: AcceleratorKind) -> Applicant:
    devices, fault = None, ""
    try:
        assignment = parse_assignment(pod.bound) if pod.bound is not None else {}
        # A kind of which it names none was left to this node.
        if kind.accelerator in assignment:
            devices = assigned_devices(assignment, owner.container, percent, kind)
    except InvalidRequest as error:
        fault = f"{owner}: {error}"
    try:
        terms = parse_terms(pod.json, owner.container, percent, kind)
    except InvalidRequest:
        terms = None
    return Applicant(owner, percent, devices, terms, fault)
