"""A node: the devices that it has, as it tells of them, and what pods hold of each."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from edgeshare.contract.devices import Accelerator
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state.request import Holding, Program


class Device(NamedTuple):
    """An accelerator as its node tells of it."""

    id: str
    """Of all kinds together, a node has one of that id."""
    model: str
    memory_mib: int
    """Less what the driver keeps; 0 where memory is not shared out."""
    healthy: bool = True
    kind: Accelerator = Accelerator.GPU


class Inventory(NamedTuple):
    """What a node has. Processor time and RAM are what pods with devices may have of it, None where it is not known."""

    node: str
    devices: tuple[Device, ...]
    """Of all kinds."""
    cpu_milli: int | None = None
    ram_mib: int | None = None


@dataclass(slots=True)
class Use:
    """What pods have of one device."""

    units: int = 0
    memory_mib: int = 0
    exclusions: Counter[str] = field(default_factory=Counter)
    """How many parts of it are held by pods of each exclusion."""
    programs: Counter[tuple[Program, int]] = field(default_factory=Counter)
    """How many parts of so many units are held by pods of each program, but for the unknown one."""


class Node:
    """One node: its inventory, and what pods hold of it."""

    __slots__ = ("_of_kind", "cpu_milli", "devices", "inventory", "listed", "ram_mib", "use")

    def __init__(self, name: str) -> None:
        self.inventory = Inventory(name, ())
        """As it told last."""
        self.devices: dict[str, Device] = {}
        """Of these each by its id."""
        self._of_kind: dict[Accelerator, tuple[Device, ...]] = {}
        self.use: dict[str, Use] = {}
        """By device; one that has vanished stays while a pod holds units of it."""
        self.cpu_milli = 0
        """What pods hold of its cores."""
        self.ram_mib = 0
        self.listed: dict[str, Holding] = {}
        """What its AcceleratorNode lists, by pod."""

    def tells(self, inventory: Inventory) -> None:
        """What it has is this now."""
        if inventory.devices is not self.inventory.devices:
            self.devices = {device.id: device for device in inventory.devices}
            self._of_kind = {}
            for device in inventory.devices:
                self._of_kind[device.kind] = (*self.of(device.kind), device)
        self.inventory = inventory

    @property
    def kinds(self) -> Collection[Accelerator]:
        """Of its devices."""
        return self._of_kind.keys()

    def of(self, kind: Accelerator) -> tuple[Device, ...]:
        """The node's devices of one kind."""
        return self._of_kind.get(kind, ())

    def free(self, device: Device) -> tuple[int, int]:
        """Units and MiB of a device that nobody has; below 0 where it is over-committed."""
        use = self.use.get(device.id)
        if use is None:
            return UNITS_PER_DEVICE, device.memory_mib
        return UNITS_PER_DEVICE - use.units, device.memory_mib - use.memory_mib

    @property
    def cpu_free_milli(self) -> int | None:
        """None where it was not told."""
        return None if self.inventory.cpu_milli is None else self.inventory.cpu_milli - self.cpu_milli

    @property
    def ram_free_mib(self) -> int | None:
        """None where it was not told."""
        return None if self.inventory.ram_mib is None else self.inventory.ram_mib - self.ram_mib
