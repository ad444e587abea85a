"""Looks at each device's health, hears of faults, keeps what comes of them, and says what has changed."""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from deviceplugin.health.health_config import HealthConfig
from deviceplugin.health.health_records import HealthRecords, Known
from deviceplugin.health.rules import health_of, observe
from deviceplugin.health.state import DoubleBitError, Look, Moment, State, Xid
from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.health import HEALTHY, Answer, Health, Reason, Source
from edgeshare.inventory.nvml.device_health import Fault, NvmlHealth, Vitals

logger = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
DEV = Path("/dev")

FAULTS_PER_LOOK = 1_024
"""Faults that wait to be looked at; of a storm the last ones are kept."""

CHANGES_MAX = 64
"""Changes that wait for an API server; of more, the oldest are in the log alone."""

NVML = "nvml"
"""The name of the inventory whose devices have a driver's library."""

NOT_LISTED = "it is no longer listed"


class HealthWatch:
    """The health of a machine's devices. One thread at a time may call it; faults come from another."""

    def __init__(self, config: HealthConfig, folder: Path, boot_id: str = "", dev: Path = DEV) -> None:
        """``folder`` is where health is kept, ``dev`` where the node's ``/dev`` is seen. ``boot_id`` defaults to the
        kernel's."""
        self.configure(config)
        self._dev = dev
        self._records = HealthRecords(folder)
        self._wake: Callable[[], object] = lambda: None
        self._faults: deque[Fault] = deque(maxlen=FAULTS_PER_LOOK)
        self._nvml: NvmlHealth | None = None
        self._boot_id = boot_id or _read_boot_id()
        self._began_unix_ns = time.time_ns()
        self._known = self._records.read()
        self._health = {device_id: health_of(known.state) for device_id, known in self._known.items()}
        self._seen = {key for key, known in self._known.items() if known.state.boot_id == self._boot_id}
        """Devices that were there since the last boot. One that was not may have been taken out."""
        self.changes: deque[tuple[Device, Health]] = deque(maxlen=CHANGES_MAX)
        """Devices that fell ill or came back, the oldest first; whoever tells of one takes it out."""
        self.now: tuple[tuple[Device, Health], ...] = ()
        """Every device, and how it is, as of the last look."""

    def configure(self, config: HealthConfig) -> None:
        """From now on by these settings."""
        self._settings = config.settings()

    def listen(self, wake: Callable[[], object]) -> None:
        """``wake`` is called, by another thread, when there is a fault to ``judge``."""
        self._wake = wake

    def close(self) -> None:
        """Hears of no more faults."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def judge(
        self,
        found: Iterable[Device],
        error: str = "",
        wanted: Callable[[Device], bool] = lambda _: True,
        held: Collection[str] = (),
        temperature_c: Callable[[str], float | None] = lambda _: None,
    ) -> list[Device]:
        """The devices with their health: those that an inventory found, and those that were there before, as far as
        they are ``wanted``.

        ``error`` says why it could not look; empty: it could. ``held`` are the devices that containers have units of.
        ``temperature_c`` tells how hot a device is that has no driver's library.
        """
        present = {device.id: device for device in found}
        vitals = self._vitals()
        self._seen |= present.keys()
        if not error:
            self._forget_absent(present, vitals, held)
        faults = self._heard()
        judged = []
        for device_id, device in {**{key: known.device for key, known in self._known.items()}, **present}.items():
            if not wanted(device):
                continue
            if device_id not in self._seen:
                # Nobody can tell yet whether it was taken out meanwhile.
                health = Health(False, Reason.NO_ANSWER, error, "", Source.DRIVER, self._began_unix_ns)
            else:
                state = self._known[device_id].state if device_id in self._known else State()
                # A fault of a GPU is one of all its MIG devices, and one that names no GPU may be of any.
                gpu = device.parent or device_id
                heard = [*faults.get(gpu, ()), *(faults.get("", ()) if device.source == NVML else ())]
                absent = "" if device_id in present else error or NOT_LISTED
                health = self._observe(
                    device, state, [*heard, self._look(device, state, vitals.get(gpu), absent, temperature_c)]
                )
            judged.append((replace(device, healthy=health.healthy, cause=health.message), health))
        self.now = tuple(sorted(judged, key=lambda each: (each[0].accelerator, each[0].index)))
        return [device for device, _ in self.now]

    def silent(self, error: str) -> list[Device]:
        """The devices while ``judge`` has not come back: none is healthy until it does."""
        now = time.time_ns()
        none = Health(False, Reason.NO_ANSWER, error, "when it answers", Source.DRIVER, now)
        self.now = tuple(
            (replace(device, healthy=False, cause=health.message or error), none if health.healthy else health)
            for device, health in self.now
        )
        return [device for device, _ in self.now]

    def _forget_absent(
        self, present: Mapping[str, Device], vitals: Mapping[str, Vitals], held: Collection[str]
    ) -> None:
        for device_id, known in list(self._known.items()):
            gpu = vitals.get(known.device.parent)
            # A GPU that answers and lists a MIG device no more was partitioned anew.
            unmade = gpu is not None and not gpu.error and device_id not in held
            if device_id not in present and (unmade or device_id not in self._seen):
                logger.info("%s was taken away: forgotten", device_id)
                del self._known[device_id], self._health[device_id]
                self._records.forget(device_id)

    def _heard(self) -> dict[str, list[Xid | DoubleBitError]]:
        """The faults since the last look, by their GPU."""
        faults: dict[str, list[Xid | DoubleBitError]] = {}
        while self._faults:
            fault = self._faults.popleft()
            faults.setdefault(fault.device_id, []).append(Xid(fault.xid) if fault.xid else DoubleBitError())
        return faults

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
            logger.log(level, "%s %s is %s", KINDS[device.accelerator].word, device.id, health)
        if health.healthy != before.healthy:
            self.changes.append((device, health))
        return health

    def _vitals(self) -> dict[str, Vitals]:
        """What the driver says of its GPUs; nothing where there is none."""
        try:
            if self._nvml is None:
                self._nvml = NvmlHealth(self.hear).open(self._nvml_gpus())
            return self._nvml.look()
        except Unavailable:
            # Said by the inventory, which needs the same driver. Closed, so that it can be loaded anew.
            self.close()
            return {}

    def _nvml_gpus(self) -> dict[int, str]:
        """The GPUs that were there since the last boot, by index."""
        seen = [known.device for key, known in self._known.items() if key in self._seen]
        return {device.index: device.id for device in seen if device.source == NVML and not device.parent}

    def hear(self, fault: Fault) -> None:
        """A driver reported a fault; any thread may say so."""
        self._faults.append(fault)
        self._wake()

    def _look(
        self,
        device: Device,
        state: State,
        vitals: Vitals | None,
        absent: str,
        temperature_c: Callable[[str], float | None],
    ) -> Look:
        """``absent`` says why the device is not listed; empty: it is."""
        source = Source.DRIVER if device.source == NVML else Source.INVENTORY
        if vitals is not None and (vitals.error or not absent):
            files = self._existing({*vitals.files, *state.files})
            return Look(self._boot_id, vitals.answer, vitals.error, vitals.lost, files, source)
        files = self._existing(state.files)
        if absent or not device.healthy:
            return Look(self._boot_id, None, absent or device.cause, files=files, source=source)
        # Of a device that no driver's library tells of, its inventory says how it is.
        celsius = None if self._settings.temperature_limit_c is None else temperature_c(device.id)
        answer = Answer(temperature_c=None if celsius is None else round(celsius))
        return Look(self._boot_id, answer, files=files, source=source)

    def _existing(self, files: Iterable[str]) -> frozenset[str]:
        return frozenset(file for file in files if (self._dev / file.removeprefix("/dev/")).exists())


def _read_boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError as error:
        # Then a reboot is not taken for a reset.
        logger.warning("no boot id: %s", error)
        return "unknown"
