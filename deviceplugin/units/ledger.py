"""Which allocation holds which units, and what memory they leave. The kubelet keeps a map of its own, but it can forget
what it is just handing out; an id that a live container holds must not go to another one all the same."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from deviceplugin.units.preference import by_device
from edgeshare.contract.devices import Device
from edgeshare.contract.lifetime import State, state_at_the_plugin
from edgeshare.contract.share_class import BATCH, ShareClass
from edgeshare.contract.units import memory_cap_mib


@dataclass(frozen=True)
class Owner:
    """The container that an allocation was made for."""

    namespace: str
    pod: str
    container: str
    pod_uid: str = ""
    """Empty until the pod was read; always, where there is no API server."""
    listed: bool = True
    """False for a plain init container: the kubelet's PodResources never lists one."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}/{self.container}"

    def is_beside(self, other: "Owner") -> bool:
        """Whether both are containers of one pod, as far as is known."""
        uids = {self.pod_uid, other.pod_uid} - {""}
        return (self.namespace, self.pod) == (other.namespace, other.pod) and len(uids) < 2

    def is_same(self, other: "Owner") -> bool:
        """Whether both are one container, as far as is known."""
        return self.container == other.container and self.is_beside(other)


@dataclass(frozen=True)
class Terms:
    """What a container asked for, read once, before its first start; later edits of its pod change
    nothing."""

    request_percent: int
    """Of each of its devices."""
    limit_percent: int = 0
    """0: the manager's default."""
    share_class: ShareClass = BATCH
    memory_mib: int = 0
    """Of each of its devices; 0: the request's fraction."""
    hooked: bool = True
    """False for whole devices without a cap: nothing is shared, so nothing is intercepted."""


@dataclass(frozen=True)
class Allocation:
    """The units that one container got."""

    id: str
    unit_ids: frozenset[str]
    library: str
    """Hash of the hook library that its container mounts."""
    owner: Owner | None = None
    """Unknown between Allocate, which does not say, and the first look at PodResources."""
    terms: Terms | None = None
    """Unknown until the first PreStartContainer."""
    applicant: Owner | None = None
    """Whom it was handed out to, as far as was known at the pod's admission."""
    memory_mib: int = 0
    """What the terms say, or will say as far as was known at the pod's admission; 0: the request's fraction."""
    cdi_names: tuple[str, ...] = ()
    """The devices that its container names to CDI, each time that it starts."""

    @property
    def whose(self) -> Owner | None:
        """Whose it is, as far as is known now or was known at the pod's admission."""
        return self.owner or self.applicant

    @property
    def state(self) -> State:
        """Where it is in its life."""
        return state_at_the_plugin(self.owner is not None, self.terms is not None)


class Ledger:
    """The live allocations. No two of them hold exactly the same units."""

    def __init__(self) -> None:
        self._by_id: dict[str, Allocation] = {}
        self._by_units: dict[frozenset[str], str] = {}

    def __iter__(self) -> Iterator[Allocation]:
        return iter(tuple(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, allocation_id: str) -> Allocation | None:
        """The allocation of that id, if it is live."""
        return self._by_id.get(allocation_id)

    def put(self, allocation: Allocation) -> None:
        """Adds an allocation, or replaces the one of the same id; raises ValueError where another one holds
        exactly its units."""
        holder = self._by_units.get(allocation.unit_ids, allocation.id)
        if holder != allocation.id:
            raise ValueError(f"{holder} holds exactly the units of {allocation.id}")
        self.drop(allocation.id)
        self._by_id[allocation.id] = allocation
        self._by_units[allocation.unit_ids] = allocation.id

    def drop(self, allocation_id: str) -> None:
        """Forgets an allocation; one that is not there changes nothing."""
        allocation = self._by_id.pop(allocation_id, None)
        if allocation is not None:
            del self._by_units[allocation.unit_ids]

    def exactly(self, unit_ids: Iterable[str]) -> Allocation | None:
        """The allocation that holds these units and no others."""
        allocation_id = self._by_units.get(frozenset(unit_ids))
        return None if allocation_id is None else self._by_id[allocation_id]

    def touching(self, unit_ids: Iterable[str]) -> list[Allocation]:
        """The allocations that hold any of these units."""
        wanted = frozenset(unit_ids)
        return [allocation for allocation in self._by_id.values() if allocation.unit_ids & wanted]


def memory_left_mib(devices: Mapping[str, Device], allocations: Collection[Allocation]) -> dict[str, int]:
    """Memory of each device, less the caps of these allocations; below 0 where more was promised than there is."""
    left = {device_id: device.memory_mib for device_id, device in devices.items()}
    for allocation in allocations:
        if _taken_over(allocation, allocations):
            continue
        for device_id, units in by_device(allocation.unit_ids).items():
            if device_id in left:
                left[device_id] -= memory_cap_mib(allocation.memory_mib, devices[device_id].memory_mib, len(units))
    return left


def _taken_over(allocation: Allocation, allocations: Collection[Allocation]) -> bool:
    """Whether it is an init container's whose units a later container of its pod has: only one of them runs."""
    if allocation.owner is not None and allocation.owner.listed:
        return False
    return any(other.id != allocation.id and other.unit_ids & allocation.unit_ids for other in allocations)
