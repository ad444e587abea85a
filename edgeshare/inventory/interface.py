"""What every inventory offers, whatever kind of device it finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from edgeshare.contract.devices import Device


@dataclass(frozen=True)
class DeviceProcess:
    """A process with a context on a device. Its pid is in the host's pid namespace."""

    pid: int
    memory_bytes: int | None
    """None where the driver does not say."""


class Inventory(Protocol):
    """One kind of device on this machine, looked at again and again; not for several threads at once.

    There are no notices: health stands in each ``Device`` (``healthy``, ``cause``), and whoever wants to know of a
    change compares two looks. All files are read below the ``root`` that the inventory was made with, so that a
    recorded tree, or a host's root mounted into a container, can stand in for the machine's own.
    """

    def devices(self) -> list[Device]:
        """The devices that are there now, and their health as of now. Raises Unavailable where that cannot be
        told."""

    def memory_used_mib(self, device_id: str) -> int:
        """Memory in use on a device; 0 where nobody knows."""

    def processes(self, device_id: str) -> list[DeviceProcess] | None:
        """The processes that use a device; None where nobody knows."""

    def active(self, device_id: str) -> Mapping[int, int]:
        """The processes that ran kernels on a device since this was last asked: for how much of that time, in percent
        by pid; none where nobody knows."""

    def busy_percent(self, device_id: str) -> int | None:
        """Of the last second or the last part of one, for how much of it a device ran kernels; None where nobody
        knows."""

    def temperature_c(self, device_id: str) -> float | None:
        """How hot a device is; None where nobody knows."""

    def energy_mj(self, device_id: str) -> int | None:
        """What a device has consumed since its driver was loaded, in mJ; None where nobody knows."""

    def close(self) -> None:
        """Lets go of what is held open."""


class DevicesAlone:
    """An inventory of which nobody knows how its devices are used. What one knows of this all the same it answers
    itself."""

    def memory_used_mib(self, device_id: str) -> int:
        return 0

    def processes(self, device_id: str) -> list[DeviceProcess] | None:
        return None

    def active(self, device_id: str) -> Mapping[int, int]:
        return {}

    def busy_percent(self, device_id: str) -> int | None:
        return None

    def temperature_c(self, device_id: str) -> float | None:
        return None

    def energy_mj(self, device_id: str) -> int | None:
        return None

    def close(self) -> None:
        """Nothing is held open."""
