"""Looks at each device's health, hears of faults, keeps what comes of them, and says what has changed."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from deviceplugin.health import Answer, DoubleBitError, Look, Moment, State, Xid, health_of, observe
from deviceplugin.health_config import HealthConfig
from deviceplugin.health_records import HealthRecords, Known
from deviceplugin.node import KINDS
from edgeshare.devices import Device
from edgeshare.errors import Unavailable
from edgeshare.health import HEALTHY, Health
from edgeshare.inventory.nvml_health import Fault, NvmlHealth, Vitals

logger = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

FAULTS_PER_LOOK = 1_024
"""Faults that wait to be looked at; of a storm the last ones are kept."""

NVML_ID = "GPU-"

NOT_LISTED = "it is no longer listed"


class HealthWatch:
    """The health of a machine's devices. One thread at a time may call it; faults come from another."""

    def __init__(self, config: HealthConfig, folder: Path, boot_id: str = "") -> None:
        """``folder`` is where health is kept. ``boot_id`` defaults to the kernel's."""
        self.configure(config)
        self._records = HealthRecords(folder)
        self._wake: Callable[[], object] = lambda: None
        self._faults: deque[Fault] = deque(maxlen=FAULTS_PER_LOOK)
        self._nvml: NvmlHealth | None = None
        self._boot_id = boot_id or _read_boot_id()
        self._known = self._records.read()
        self._health = {device_id: health_of(known.state) for device_id, known in self._known.items()}
        self._seen = {key for key, known in self._known.items() if known.state.boot_id == self._boot_id}
        """Devices that were there since the last boot. One that was not may have been taken out."""
        self._changes: list[tuple[Device, Health]] = []

    def configure(self, config: HealthConfig) -> None:
        """From now on by these settings."""
        self._settings = config.settings()
        self._root = config.root

    def listen(self, wake: Callable[[], object]) -> None:
        """``wake`` is called, by another thread, when there is a fault to ``judge``."""
        self._wake = wake

    def close(self) -> None:
        """Hears of no more faults."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def changes(self) -> list[tuple[Device, Health]]:
        """The devices whose health has changed since this was called last."""
        changes, self._changes = self._changes, []
        return changes

    def health(self) -> list[tuple[Device, Health]]:
        """Every device, and how it is."""
        # Of the last look, while another may be under way.
        return [(known.device, self._health.get(known.device.id, HEALTHY)) for known in list(self._known.values())]

    def judge(self, found: Iterable[Device], error: str = "") -> list[Device]:
        """The devices with their health: those that an inventory found, and those that were there before. ``error``
        says why it could not look; empty: it could."""
        present = {device.id: device for device in found}
        vitals = self._vitals()
        self._seen |= present.keys()
        for device_id in [key for key in self._known if key not in present and key not in self._seen and not error]:
            logger.info("%s is not there since the last boot: forgotten", device_id)
            del self._known[device_id], self._health[device_id]
            self._records.forget(device_id)
        faults: dict[str, list[Xid | DoubleBitError]] = {}
        while self._faults:
            fault = self._faults.popleft()
            faults.setdefault(fault.device_id, []).append(Xid(fault.xid) if fault.xid else DoubleBitError())
        judged = []
        for device_id, device in {**{key: known.device for key, known in self._known.items()}, **present}.items():
            if device_id not in self._seen:
                judged.append(replace(device, healthy=False, cause=error))
                continue
            state = self._known[device_id].state if device_id in self._known else State()
            # A fault of a GPU is one of all its MIG devices.
            gpu = device.parent or device_id
            look = self._look(state, present.get(device_id), vitals.get(gpu), error)
            health = self._observe(device, state, [*faults.get(gpu, ()), look])
            judged.append(replace(device, healthy=health.healthy, cause=health.message))
        return sorted(judged, key=lambda device: (device.accelerator, device.index))

    def _observe(self, device: Device, state: State, observations: list[Xid | DoubleBitError | Look]) -> Health:
        now = Moment(time.monotonic_ns(), time.time_ns())
        for seen in observations:
            state = observe(state, seen, self._settings, now)
        before, health = self._health.get(device.id, HEALTHY), health_of(state)
        self._known[device.id] = Known(replace(device, healthy=True, cause=""), state)
        self._health[device.id] = health
        self._records.write(self._known[device.id])
        if health != before:
            level = logging.INFO if health.healthy else logging.WARNING
            logger.log(level, "%s %s is %s", KINDS[device.accelerator], device.id, health)
        if health.healthy != before.healthy:
            self._changes.append((device, health))
        return health

    def _vitals(self) -> dict[str, Vitals]:
        """What the driver says of its GPUs; nothing where there is none."""
        try:
            if self._nvml is None:
                self._nvml = NvmlHealth(self._hear).open(self._nvml_gpus())
            return self._nvml.look()
        except Unavailable:
            # Said by the inventory, which needs the same driver. Closed, so that it can be loaded anew.
            self.close()
            return {}

    def _nvml_gpus(self) -> dict[int, str]:
        """The GPUs that were there since the last boot, by index. Nothing else has an id of NVML's kind."""
        seen = [known.device for key, known in self._known.items() if key in self._seen]
        return {device.index: device.id for device in seen if device.id.startswith(NVML_ID)}

    def _hear(self, fault: Fault) -> None:
        self._faults.append(fault)
        self._wake()

    def _look(self, state: State, device: Device | None, vitals: Vitals | None, error: str) -> Look:
        if vitals is not None and (device is not None or vitals.error):
            answer = Answer(
                energy_mj=vitals.energy_mj,
                uncorrected=vitals.uncorrected,
                remap_pending=vitals.remap_pending,
                remap_failed=vitals.remap_failed,
                temperature_c=vitals.temperature_c,
            )
            return Look(
                self._boot_id,
                None if vitals.error else answer,
                vitals.error,
                vitals.lost,
                self._existing({*vitals.files, *state.files}),
            )
        files = self._existing(state.files)
        if device is None:
            return Look(self._boot_id, None, error or NOT_LISTED, files=files)
        # Of a device that no driver's library tells of, its inventory says how it is.
        return Look(self._boot_id, Answer() if device.healthy else None, device.cause, files=files)

    def _existing(self, files: Iterable[str]) -> frozenset[str]:
        return frozenset(file for file in files if (self._root / file.lstrip("/")).exists())


def _read_boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError as error:
        # Then a reboot is not taken for a reset.
        logger.warning("no boot id: %s", error)
        return "unknown"
