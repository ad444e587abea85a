"""Units of sharing: hundredths of a device, MiB, nanoseconds; and how they are checked."""

from collections.abc import Iterable

from edgeshare.contract.errors import InvalidRequest

UNITS_PER_DEVICE = 100
"""The kubelet counts whole numbers, and a pod's status lists every unit's id: more would only swell it."""

MIB = 1 << 20
NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

MAX_DEVICES_PER_ALLOCATION = 16
"""No server has more accelerators on one node than this."""

COMMAND_CHARACTERS = 200
"""How much of a command line an allocation's owner holds, which status shows."""

MEMORY_MIB_MAX = 1 << 24
"""16 TiB: no accelerator has so much; a number with a unit too many is refused."""


def parse_request_percent(percent: int) -> tuple[int, int]:
    """Splits a container's request into (devices, units of each device).

    1–99 is a part of one device; a multiple of 100 is that many whole devices. Raises InvalidRequest otherwise.
    """
    if 1 <= percent < UNITS_PER_DEVICE:
        return 1, percent
    devices, rest = divmod(percent, UNITS_PER_DEVICE)
    if percent > 0 and rest == 0 and devices <= MAX_DEVICES_PER_ALLOCATION:
        return devices, UNITS_PER_DEVICE
    raise InvalidRequest(
        f"{percent} percent cannot be granted: ask for 1 to 99 (a part of one device) "
        f"or for 100, 200, … (whole devices, at most {MAX_DEVICES_PER_ALLOCATION})"
    )


def check_limit_percent(limit_percent: int, request_percent: int) -> int:
    """Returns the limit of a container that requests a part of a device; raises InvalidRequest where it is below
    the request or above a whole device."""
    if request_percent <= limit_percent <= UNITS_PER_DEVICE:
        return limit_percent
    raise InvalidRequest(
        f"a limit of {limit_percent} percent does not fit a request of {request_percent}: "
        f"choose one from {request_percent} to {UNITS_PER_DEVICE}"
    )


def memory_cap_mib(named_mib: int, device_memory_mib: int, request_percent: int) -> int:
    """The memory cap of a container on a device: what it names, or where that is 0 the fraction of the device's memory
    that it has of its time."""
    return named_mib or device_memory_mib * request_percent // UNITS_PER_DEVICE


def unit_id(device_id: str, unit: int) -> str:
    """The kubelet's id of one unit: ``<device id>::<00–99>``."""
    return f"{device_id}::{unit:02d}"


def parse_unit_id(text: str) -> tuple[str, int]:
    """The inverse of unit_id; raises InvalidRequest for what it never returns."""
    device_id, separator, unit = text.rpartition("::")
    if separator and device_id and len(unit) == 2 and unit.isascii() and unit.isdigit():
        return device_id, int(unit)
    raise InvalidRequest(f"{text!r} is no unit of a device: expected <device id>::<00-99>")


def peak(sizes: Iterable[tuple[int, bool]]) -> int:
    """The most that containers have at a time: each one's size, and whether it runs along with those after it."""
    running = most = 0
    for size, runs_along in sizes:
        most = max(most, running + size)
        running += size if runs_along else 0
    return most
