"""All inventories of a machine as one: the devices of every kind, and what stands in the way of finding more."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edgeshare.contract.devices import Accelerator, Device, is_device_id
from edgeshare.contract.errors import NoDriver, Unavailable
from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.declarations import Declaration, devices_of
from edgeshare.inventory.interface import DeviceProcess, DevicesAlone, Inventory
from edgeshare.inventory.tree import Tree, shown


@dataclass(frozen=True)
class Source:
    """One kind of device, and how its inventory is opened: that raises NoDriver where there is nothing of its kind,
    Unavailable where it cannot be told."""

    name: str
    open: Callable[[], Inventory]


def sources_of(config: InventoryConfig) -> list[Source]:
    """The sources that the configuration asks for."""
    known = {
        "nvml": lambda: _open_nvml(config.root),
        "jetson": lambda: _open_jetson(config),
        "edgetpu": lambda: _open_edgetpu(config.root),
    }
    found = [Source(name, known[name]) for name in dict.fromkeys(config.sources)]
    if config.declared:
        found.append(Source("declared", lambda: _open_declared(config)))
    return found


class Inventories:
    """The inventories of a machine, each open while it answers; an ``Inventory`` itself, whose ``devices`` never fails.

    A device once seen stays listed, not healthy and with the cause: containers may have units of it.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._open: dict[str, Inventory] = {}
        self._known: dict[str, list[Device]] = {}
        self.troubles: tuple[str, ...] = ()
        """Why something that is there cannot be listed; as of the last look, like what follows."""
        self.absent: tuple[str, ...] = ()
        """What is not there, which is no trouble."""

    def devices(self) -> list[Device]:
        """Every device, by source; GPUs are numbered through, and EdgeTPUs."""
        troubles: list[str] = []
        absent: list[str] = []
        for source in self._sources:
            known = self._known.get(source.name, [])
            try:
                inventory = self._open.get(source.name)
                if inventory is None:
                    inventory = self._open[source.name] = source.open()
                self._known[source.name] = _kept(known, inventory.devices())
            except Unavailable as error:
                (absent if isinstance(error, NoDriver) and not known else troubles).append(str(error))
                self._known[source.name] = [_lost(device, str(error)) for device in known]
                self._close(source.name)
        devices, twice = _distinct(_numbered(self._known[source.name] for source in self._sources))
        self.troubles = (*troubles, *twice)
        self.absent = tuple(absent)
        return devices

    def memory_used_mib(self, device_id: str) -> int:
        inventory = self._of(device_id)
        return inventory.memory_used_mib(device_id) if inventory else 0

    def processes(self, device_id: str) -> list[DeviceProcess] | None:
        inventory = self._of(device_id)
        return inventory.processes(device_id) if inventory else None

    def active(self, device_id: str) -> Mapping[int, int]:
        inventory = self._of(device_id)
        return inventory.active(device_id) if inventory else {}

    def busy_percent(self, device_id: str) -> int | None:
        inventory = self._of(device_id)
        return inventory.busy_percent(device_id) if inventory else None

    def temperature_c(self, device_id: str) -> float | None:
        inventory = self._of(device_id)
        return inventory.temperature_c(device_id) if inventory else None

    def energy_mj(self, device_id: str) -> int | None:
        inventory = self._of(device_id)
        return inventory.energy_mj(device_id) if inventory else None

    def close(self) -> None:
        for name in list(self._open):
            self._close(name)

    def _close(self, name: str) -> None:
        inventory = self._open.pop(name, None)
        if inventory is not None:
            inventory.close()

    def _of(self, device_id: str) -> Inventory | None:
        """The inventory that has a device, if it answers."""
        for name, inventory in self._open.items():
            if any(device.id == device_id for device in self._known.get(name, [])):
                return inventory
        return None


def _kept(known: Iterable[Device], found: Sequence[Device]) -> list[Device]:
    there = {device.id for device in found}
    gone = "it is no longer there"
    return [*found, *(_lost(device, gone) for device in known if device.id not in there)]


def _lost(device: Device, cause: str) -> Device:
    return replace(device, healthy=False, cause=cause)


def _numbered(groups: Iterable[Sequence[Device]]) -> list[Device]:
    """One source after the other, each kind numbered on from where the one before ended; no number twice."""
    numbered: list[Device] = []
    taken: dict[Accelerator, set[int]] = {kind: set() for kind in Accelerator}
    for group in groups:
        begins = {kind: max(indices, default=-1) + 1 for kind, indices in taken.items()}
        for device in group:
            index = begins[device.accelerator] + device.index
            while index in taken[device.accelerator]:
                index += 1
            taken[device.accelerator].add(index)
            numbered.append(replace(device, index=index))
    return numbered


def _distinct(devices: Iterable[Device]) -> tuple[list[Device], list[str]]:
    """The devices, the first of each id; and what to say of the others."""
    by_id: dict[str, Device] = {}
    twice = []
    for device in devices:
        first = by_id.setdefault(device.id, device)
        if first is not device:
            twice.append(
                f"{device.source} lists a device {device.id}, as {first.source} does: "
                "the first one is shared; give the other another id, or leave its source out"
            )
    return list(by_id.values()), twice


class DeclaredInventory(DevicesAlone):
    """Devices that the configuration lists by hand, which no other inventory knows how to find; each is well while its
    paths are there."""

    def __init__(self, declarations: tuple[Declaration, ...], root: Path = Path("/")) -> None:
        self._declarations = declarations
        self._tree = Tree(root)

    def devices(self) -> list[Device]:
        """The devices listed, whether they are there or not, and one for each match. Raises Unavailable where a
        match's name is none for a device."""
        patterns = {pattern for each in self._declarations for pattern in (*each.paths, each.each) if pattern}
        devices = devices_of(self._declarations, {pattern: self._tree.matches(pattern) for pattern in patterns})
        for device in devices:
            if not is_device_id(device.id):
                raise Unavailable(
                    f"inventory.declared makes a device {shown(device.id)}, which is no name for one: "
                    "at most 59 letters, digits, '.', '_', ':' and '-' are; choose a narrower pattern"
                )
        return devices


# Each is loaded only where it is asked for: memory is counted on a node.


def _open_nvml(root: Path) -> Inventory:
    from edgeshare.inventory.nvml.nvml import NvmlInventory  # noqa: PLC0415

    return NvmlInventory(root).open()


def _open_jetson(config: InventoryConfig) -> Inventory:
    from edgeshare.inventory.jetson import JetsonInventory  # noqa: PLC0415

    return JetsonInventory(config.jetson_reserve_mib, config.root)


def _open_edgetpu(root: Path) -> Inventory:
    from edgeshare.inventory.edgetpu import EdgeTpuInventory  # noqa: PLC0415

    return EdgeTpuInventory(root)


def _open_declared(config: InventoryConfig) -> Inventory:
    return DeclaredInventory(tuple(device.declaration() for device in config.declared), config.root)
