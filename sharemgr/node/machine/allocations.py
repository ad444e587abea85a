"""The node's book of allocations: who was given which device, and whether there is room for one more."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from edgeshare.contract.devices import Device
from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound
from edgeshare.contract.object_names import LABEL, NAME_MAX
from edgeshare.contract.units import (
    COMMAND_CHARACTERS,
    MAX_DEVICES_PER_ALLOCATION,
    UNITS_PER_DEVICE,
    check_limit_percent,
    memory_cap_mib,
)

# It also names a folder.
_ID = re.compile(LABEL)

# What Kubernetes lets these be: DNS labels and, of a pod, a DNS subdomain (RFC 1123). A uid is a UUID, that of a static
# pod a hash.
_OF_OWNER = {
    "namespace": (re.compile(LABEL), 63),
    "pod": (re.compile(rf"{LABEL}(\.{LABEL})*"), NAME_MAX),
    "pod_uid": (re.compile(r"[A-Za-z0-9._-]*"), 128),
    "container": (re.compile(LABEL), 63),
}

_QUOTED_CHARACTERS = 80
"""How much of what is refused an answer shows: gRPC cannot send one of more than some kilobytes."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose an allocation is; empty where it is not known."""

    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    container: str = ""
    command: str = ""
    """Of `edgeshare run`, which has no pod."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The units and the devices that one container got."""

    id: str
    device_ids: tuple[str, ...]
    """Several only where each is requested whole."""
    request_percent: int
    """Of each device."""
    limit_percent: int = 0
    """0: the node's default."""
    latency: bool = False
    memory_mib: int = 0
    """Cap on memory of each device. 0: the part of the device's memory that is requested of its time."""
    owner: Owner = field(default_factory=Owner)


class Book:
    """All allocations of a node, checked against its devices. Its methods change all or nothing."""

    def __init__(self, devices: Iterable[Device], lend: bool = True) -> None:
        """`lend`: an allocation that names no limit may use what is idle; otherwise its limit is its request."""
        self._devices = {device.id: device for device in devices}
        self._lend = lend
        self._allocations: dict[str, Allocation] = {}

    def extend(self, device: Device) -> None:
        """A device that came later."""
        self._devices[device.id] = device

    def completed(self, allocation: Allocation) -> Allocation:
        """The allocation with its defaults filled in. Raises InvalidRequest where a field is out of range and
        NotFound where a device is not there; does not look at what room is left."""
        where = f"allocation {_quoted(allocation.id)}"
        if not _ID.fullmatch(allocation.id):
            raise InvalidRequest(
                f"{where} cannot be named so: use 1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends"
            )
        _check_owner(allocation.owner, where)
        devices = [self._device(device_id, where) for device_id in allocation.device_ids]
        if len({device.accelerator for device in devices}) > 1:
            raise InvalidRequest(f"{where} names devices of several kinds: make an allocation of each kind")
        request_percent = allocation.request_percent
        if not 1 <= len(devices) <= MAX_DEVICES_PER_ALLOCATION:
            raise InvalidRequest(f"{where} names {len(devices)} devices: name 1 to {MAX_DEVICES_PER_ALLOCATION}")
        if len(set(allocation.device_ids)) < len(devices):
            raise InvalidRequest(f"{where} names a device twice: name each once")
        if not 1 <= request_percent <= UNITS_PER_DEVICE:
            raise InvalidRequest(
                f"{where} requests {request_percent} percent of a device: request 1 to {UNITS_PER_DEVICE}"
            )
        if len(devices) > 1 and request_percent < UNITS_PER_DEVICE:
            raise InvalidRequest(
                f"{where} requests {request_percent} percent of each of {len(devices)} devices: "
                f"request a part of one device, or {UNITS_PER_DEVICE} percent of each"
            )
        smallest = min(devices, key=lambda device: device.memory_mib)
        if allocation.memory_mib < 0 or allocation.memory_mib > smallest.memory_mib:
            raise InvalidRequest(
                f"{where} asks for {allocation.memory_mib} MiB of device {smallest.id}, "
                f"which has {smallest.memory_mib}: ask for at most that"
            )
        default_limit = UNITS_PER_DEVICE if self._lend else request_percent
        try:
            limit_percent = check_limit_percent(allocation.limit_percent or default_limit, request_percent)
        except InvalidRequest as error:
            raise InvalidRequest(f"{where}: {error}") from error
        return replace(
            allocation,
            limit_percent=limit_percent,
            memory_mib=memory_cap_mib(allocation.memory_mib, smallest.memory_mib, request_percent),
        )

    def add(self, allocation: Allocation) -> Allocation:
        """Adds an allocation and returns it with its defaults; adding it once more changes nothing, also where a value
        that it leaves to the defaults was changed. Raises InvalidRequest and NotFound as `completed` does,
        AlreadyExists where another has the id, and NoRoom where a device has not as many units, or not as much memory,
        left."""
        present = self._allocations.get(allocation.id)
        if present is not None:
            if not _is_same(present, allocation):
                raise is_another(allocation.id)
            return present
        wanted = self.completed(allocation)
        for device_id in wanted.device_ids:
            units_left = UNITS_PER_DEVICE - self.allocated_percent(device_id)
            if wanted.request_percent > units_left:
                raise NoRoom(
                    f"allocation {wanted.id!r} requests {wanted.request_percent} percent of device {device_id}, "
                    f"which has {units_left} left: request less, or remove another allocation"
                )
            memory_left_mib = self._devices[device_id].memory_mib - self.allocated_memory_mib(device_id)
            if wanted.memory_mib > memory_left_mib:
                raise NoRoom(
                    f"allocation {wanted.id!r} asks for {wanted.memory_mib} MiB of device {device_id}, "
                    f"which has {memory_left_mib} left: ask for less, or remove another allocation"
                )
        self._allocations[wanted.id] = wanted
        return wanted

    def update(
        self,
        allocation_id: str,
        *,
        limit_percent: int | None = None,
        latency: bool | None = None,
        owner: Owner | None = None,
    ) -> Allocation:
        """Changes what is named and returns the allocation as it is then. Raises NotFound and InvalidRequest."""
        present = self.get(allocation_id)
        changed = self.completed(
            replace(
                present,
                limit_percent=present.limit_percent if limit_percent is None else limit_percent,
                latency=present.latency if latency is None else latency,
                owner=present.owner if owner is None else owner,
            )
        )
        self._allocations[allocation_id] = changed
        return changed

    def remove(self, allocation_id: str) -> Allocation | None:
        """Takes an allocation out and returns it; None where it is not there."""
        return self._allocations.pop(allocation_id, None)

    def find(self, allocation_id: str) -> Allocation | None:
        """The allocation, or None."""
        return self._allocations.get(allocation_id)

    def get(self, allocation_id: str) -> Allocation:
        """The allocation. Raises NotFound."""
        allocation = self._allocations.get(allocation_id)
        if allocation is None:
            raise NotFound(
                f"there is no allocation {_quoted(allocation_id)} on this node: list them to see what there is"
            )
        return allocation

    def all(self) -> tuple[Allocation, ...]:
        """All allocations, in the order in which they were added."""
        return tuple(self._allocations.values())

    def allocated_percent(self, device_id: str) -> int:
        """Units of a device that are given out."""
        return sum(each.request_percent for each in self._on(device_id))

    def allocated_memory_mib(self, device_id: str) -> int:
        """Memory of a device that is given out: the sum of the caps."""
        return sum(each.memory_mib for each in self._on(device_id))

    def _on(self, device_id: str) -> Iterable[Allocation]:
        return (each for each in self._allocations.values() if device_id in each.device_ids)

    def _device(self, device_id: str, where: str) -> Device:
        device = self._devices.get(device_id)
        if device is None:
            known = ", ".join(self._devices) or "none"
            raise NotFound(f"{where} names device {_quoted(device_id)}, which this node has not: it has {known}")
        return device


def _check_owner(owner: Owner, where: str) -> None:
    for name, (pattern, most) in _OF_OWNER.items():
        text = getattr(owner, name)
        if text and (len(text) > most or not pattern.fullmatch(text)):
            raise InvalidRequest(
                f"{where} has an owner whose {name} {_quoted(text)} is none of Kubernetes': "
                f"name one as the API server has it, of at most {most} characters"
            )
    if len(owner.command) > COMMAND_CHARACTERS or not owner.command.isprintable():
        raise InvalidRequest(
            f"{where} has an owner whose command {_quoted(owner.command)} cannot be shown: "
            f"give at most {COMMAND_CHARACTERS} characters, in one line"
        )


def _quoted(text: str) -> str:
    if len(text) <= _QUOTED_CHARACTERS:
        return repr(text)
    return f"{text[:_QUOTED_CHARACTERS]!r}… ({len(text)} characters)"


def is_another(allocation_id: str) -> AlreadyExists:
    """What whoever adds an allocation is told where the id is another one's."""
    return AlreadyExists(
        f"allocation {allocation_id!r} is there already and is another: choose another id, or remove it first"
    )


def _is_same(present: Allocation, wanted: Allocation) -> bool:
    limit_percent = wanted.limit_percent or present.limit_percent
    memory_mib = wanted.memory_mib or present.memory_mib
    return replace(wanted, limit_percent=limit_percent, memory_mib=memory_mib) == present
