"""What is known of each device's health, on disk: ``<folder>/<device>.json``. So a restart of the plugin makes no
device healthy, and one that was lost meanwhile is still listed."""

import logging
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pydantic import TypeAdapter

from deviceplugin.files import RECORD_BYTES_MAX, remove_unfinished, write_file
from deviceplugin.health.rules import resumed
from deviceplugin.health.state import State
from edgeshare.bounded_file import read
from edgeshare.contract.devices import Device
from edgeshare.log_trouble import Trouble

logger = logging.getLogger(__name__)

ENERGY_GROWTH = 2
"""An energy counter is written again when it has grown to so many times what is written. A reset is seen by a lower
one, so it need not be exact, and a small machine's flash is not to be worn by it."""


@dataclass(frozen=True)
class Known:
    """A device as it was last found, and its health."""

    device: Device
    state: State


KNOWN: TypeAdapter[Known] = TypeAdapter(Known)


class HealthRecords:
    """The records below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[str, Known] = {}
        self._unwritten: dict[str, Trouble] = {}
        """By the id of a device whose health could not be kept."""

    def read(self) -> dict[str, Known]:
        """Every record, by its device's id. One that cannot be read is left out, and said so. For a start:
        what a plugin that was killed was just writing is removed."""
        remove_unfinished(self._folder)
        for path in sorted(self._folder.glob("*.json")):
            try:
                known = KNOWN.validate_json(read(path, RECORD_BYTES_MAX))
            except (OSError, ValueError) as error:
                first = " ".join(str(error).split())[:200]
                logger.warning("%s is left out, the device counts as never seen: %s", path, first)
                continue
            self._written[known.device.id] = known
        return dict(self._written)

    def write(self, known: Known) -> None:
        """Keeps a device's health, if what is kept is not as good; says so where the disk does not take it."""
        known = Known(known.device, resumed(known.state))
        before = self._written.get(known.device.id)
        if before is not None and _is_as_good(before.state, known.state) and before.device == known.device:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_file(self._path(known.device.id), KNOWN.dump_json(known))
        except OSError as error:
            # A device is taken off the list whether or not that can be kept.
            complaint = f"the health of {known.device.id} is not kept"
            self._unwritten.setdefault(known.device.id, Trouble(logger, complaint)).fails(error)
            return
        if known.device.id in self._unwritten:
            self._unwritten.pop(known.device.id).over()
        self._written[known.device.id] = known

    def forget(self, device_id: str) -> None:
        """Removes the record of a device that is no more."""
        if self._written.pop(device_id, None) is not None:
            try:
                self._path(device_id).unlink(missing_ok=True)
            except OSError as error:
                # At the next start it counts as one that was taken away.
                logger.warning("the health of %s stays: %s", device_id, error)

    def _path(self, device_id: str) -> Path:
        return self._folder / f"{quote(device_id, safe='')}.json"


def _is_as_good(written: State, state: State) -> bool:
    same = (written.conditions, written.boot_id, written.uncorrected, written.remap_pending, written.files) == (
        state.conditions,
        state.boot_id,
        state.uncorrected,
        state.remap_pending,
        state.files,
    )
    if written.energy_mj is None or state.energy_mj is None:
        return same and written.energy_mj == state.energy_mj
    return same and written.energy_mj <= state.energy_mj < ENERGY_GROWTH * written.energy_mj
