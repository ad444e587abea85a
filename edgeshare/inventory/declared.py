"""Devices that the configuration lists by hand: what no other inventory knows how to find."""

from collections.abc import Mapping
from pathlib import Path

from edgeshare.contract.devices import Device, is_device_id
from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.declarations import Declaration, devices_of
from edgeshare.inventory.interface import DeviceProcess
from edgeshare.inventory.tree import Tree, shown


class DeclaredInventory:
    """The devices of a list; each is well while its paths are there."""

    def __init__(self, declarations: tuple[Declaration, ...], root: Path = Path("/")) -> None:
        self._declarations = declarations
        self._tree = Tree(root)

    def devices(self) -> list[Device]:
        """Those listed, whether they are there or not, and one for each match. Raises Unavailable where a match's name
        is none for a device."""
        patterns = {pattern for each in self._declarations for pattern in (*each.paths, each.each) if pattern}
        devices = devices_of(self._declarations, {pattern: self._tree.matches(pattern) for pattern in patterns})
        for device in devices:
            if not is_device_id(device.id):
                raise Unavailable(
                    f"inventory.declared makes a device {shown(device.id)}, which is no name for one: "
                    "at most 59 letters, digits, '.', '_', ':' and '-' are; choose a narrower pattern"
                )
        return devices

    def memory_used_mib(self, device_id: str) -> int:
        """0: nobody can be asked."""
        return 0

    def processes(self, device_id: str) -> list[DeviceProcess] | None:
        return None

    def active(self, device_id: str) -> Mapping[int, int]:
        """Nobody knows."""
        return {}

    def busy_percent(self, device_id: str) -> int | None:
        return None

    def temperature_c(self, device_id: str) -> float | None:
        return None

    def energy_mj(self, device_id: str) -> int | None:
        return None

    def close(self) -> None:
        """Nothing is held open."""
