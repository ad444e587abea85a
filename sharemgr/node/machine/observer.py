"""Looks at the devices again and again: health, memory and processes, as the driver tells them; and health as it is
told by others."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic_ns
from typing import Protocol, TypeVar

from edgeshare import detached
from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.text import in_one_line
from edgeshare.contract.units import NS_PER_S
from edgeshare.inventory.interface import Inventory
from edgeshare.waiting import first_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

INTERVAL_S = 1.0
"""How old what the driver says may be: memory that a dead process held is missed by nobody for a second."""

GLANCE_S = 0.05
"""At least this long between two glances."""

IDLE_INTERVAL_S = 5.0
"""How old it may be where nobody has an allocation: each look wakes a processor, and the driver."""

FRESH_NS = 60 * NS_PER_S
"""So long health that was told holds. Who tells it does so three times as often; one that no longer does is gone, and
may be wrong."""

CAUSE_CHARACTERS = 500
"""So much of a cause is kept: status, metrics and the log show it."""


@dataclass(frozen=True)
class Observation:
    """One look at the devices."""

    began_at_ns: int
    """On the monotonic clock."""
    devices: tuple[Device, ...]
    memory_used_mib: dict[str, int]
    """By device id."""
    processes: dict[str, dict[int, int | None]]
    """By device id: bytes by pid, None where the driver does not say; without those of which it lists no processes."""
    busy_percent: dict[str, int]
    """By device id, where the driver says it."""
    active: dict[str, Mapping[int, int]] = field(default_factory=dict)
    """By device id: of those that ran kernels since the look before, for how much of the time, in percent by pid, as
    far as the driver says it."""
    temperature_c: dict[str, float] = field(default_factory=dict)
    """By device id, where somebody says it, as the next."""
    energy_mj: dict[str, int] = field(default_factory=dict)
    """What devices have consumed since their driver was loaded."""


class Between(Protocol):
    """Who wants glances between two looks."""

    wanted: asyncio.Event
    """Set while one is wanted."""

    def begin(self) -> Iterable[str]:
        """One begins; of these devices."""

    def deliver(self, told: dict[str, dict[int, int | None]], /) -> None:
        """Takes it in."""


def observe(inventory: Inventory, last: tuple[Device, ...]) -> Observation:
    """Looks once; where the driver went away, the devices of the last look are unhealthy."""
    began_at_ns = monotonic_ns()
    try:
        devices = tuple(inventory.devices())
    except Unavailable as error:
        lost = tuple(replace(device, healthy=False, cause=str(error)) for device in last)
        return Observation(began_at_ns, lost, {}, {}, {})
    return Observation(
        began_at_ns=began_at_ns,
        devices=devices,
        memory_used_mib={device.id: inventory.memory_used_mib(device.id) for device in devices},
        processes=glance(inventory, [device.id for device in devices]),
        busy_percent=known(devices, inventory.busy_percent),
        active={device.id: inventory.active(device.id) for device in devices},
        temperature_c=known(devices, inventory.temperature_c),
        energy_mj=known(devices, inventory.energy_mj),
    )


def known(devices: Iterable[Device], told: Callable[[str], T | None]) -> dict[str, T]:
    """By device id what somebody says of a device, of those of which somebody does."""
    return {device.id: value for device in devices if (value := told(device.id)) is not None}


def glance(inventory: Inventory, device_ids: Iterable[str]) -> dict[str, dict[int, int | None]]:
    """What processes have of some devices, as ``Observation.processes``."""
    return {
        device_id: {process.pid: process.memory_bytes for process in processes}
        for device_id in device_ids
        if (processes := inventory.processes(device_id)) is not None
    }


async def watch(
    inventory: Inventory,
    devices: tuple[Device, ...],
    begin: Callable[[], None],
    deliver: Callable[[Observation], None],
    occupied: asyncio.Event,
    glances: Between,
) -> None:
    """Says that it begins to look, looks and delivers the observation, until it is cancelled: every second while there
    are allocations, as ``occupied`` says; and glances in between as long as that is wanted.

    The driver may take milliseconds to answer, and for ever when a GPU hangs: a thread of its own waits for it, so
    that no grant does.
    """
    while True:
        begin()
        observation = await detached.result(partial(observe, inventory, devices))
        was = {device.id: device.healthy for device in devices}
        for device in observation.devices:
            if was.get(device.id, device.healthy) != device.healthy:
                state = "healthy again" if device.healthy else f"not healthy: {device.cause}"
                logger.warning("%s %d (%s) is %s", KINDS[device.accelerator].word, device.index, device.id, state)
        devices = observation.devices
        deliver(observation)
        await _rest(inventory, glances)
        await first_of(occupied, timeout_s=IDLE_INTERVAL_S - INTERVAL_S)


async def _rest(inventory: Inventory, glances: Between) -> None:
    """Until the next look is due. Looks and glances never overlap: each says when it begins."""
    now_s = asyncio.get_running_loop().time
    ends_s = now_s() + INTERVAL_S
    while (left_s := ends_s - now_s()) > 0:
        await first_of(glances.wanted, timeout_s=left_s)
        if glances.wanted.is_set():
            told = await detached.result(partial(glance, inventory, glances.begin()))
            glances.deliver(told)
            await asyncio.sleep(GLANCE_S)


class ToldHealth:
    """Devices' health as somebody else knows it, who looks at it more closely than the manager does: on a node of a
    cluster the device plugin. While it is fresh it goes before what the manager sees."""

    def __init__(self) -> None:
        self._causes: dict[str, str] = {}
        self._until_ns = 0

    def tell(self, causes: Mapping[str, str], now_ns: int) -> None:
        """Why each device is not healthy, by id, empty for one that is; takes the place of all that was told before.
        Of a cause one line is kept."""
        self._causes = {device_id: in_one_line(cause, CAUSE_CHARACTERS) for device_id, cause in causes.items()}
        self._until_ns = now_ns + FRESH_NS

    def of(self, device: Device, now_ns: int) -> Device:
        """The device with its health as it was told, or else as it is."""
        if device.id not in self._causes or now_ns >= self._until_ns:
            return device
        cause = self._causes[device.id]
        return replace(device, healthy=not cause, cause=cause)
