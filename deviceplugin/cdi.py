"""Specs of the Container Device Interface: what a container runtime does for a device that is asked for by name.

Fields, and the rules for names, are those of its SPEC.md (github.com/cncf-tags/container-device-interface).
"""

import asyncio
import json
import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from deviceplugin.devices import Devices
from deviceplugin.files import write_file
from deviceplugin.injection_config import OUR_GPU_KIND, OUR_VENDOR, Injection
from deviceplugin.waiting import first_of
from edgeshare.devices import Accelerator, Device
from edgeshare.errors import InvalidRequest, Unavailable

logger = logging.getLogger(__name__)

OUR_TPU_KIND = f"{OUR_VENDOR}/tpu"

PERMISSIONS = "rw"
"""Where none are given, CDI lets the container make nodes of the device, too."""

OLDEST_VERSION = "0.3.0"
"""The oldest version that has what a spec uses is read by the most runtimes."""

DIGIT_FIRST_VERSION = "0.5.0"
"""The first in which a name may begin with a digit, as a Jetson's serial and an EdgeTPU's address do."""

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")


def present(device: Device) -> Device:
    """The device with those of its nodes that are there: a runtime refuses a container for one that is not."""
    return replace(device, paths=tuple(node for node in device.paths if Path(node).exists()))


def qualified_name(device: Device, config: Injection) -> str:
    """``kind=id``; raises InvalidRequest where the id cannot be a CDI name."""
    if not NAME.fullmatch(device.id):
        raise InvalidRequest(
            f"the device id {device.id!r} cannot be a CDI name, which has letters, digits and, between them, any of "
            "_ . : - : give the device another id, or set injection.devices to device-nodes"
        )
    return f"{_kind(device, config)}={device.id}"


def spec(kind: str, devices: Iterable[Device]) -> dict[str, Any]:
    """The CDI spec of these devices, all of one kind."""
    entries: list[dict[str, Any]] = [
        {
            "name": device.id,
            "containerEdits": {
                # A variable of its own for each: of edits that set the same one the last would win. And every device
                # has to edit something, while a simulated GPU has no node.
                "env": [f"EDGESHARE_{device.accelerator.upper()}_{device.index}={device.id}"],
                "deviceNodes": [{"path": node, "permissions": PERMISSIONS} for node in device.paths],
            },
        }
        for device in sorted(devices, key=lambda device: device.id)
    ]
    digit_first = any(entry["name"][0].isdigit() for entry in entries)
    version = DIGIT_FIRST_VERSION if digit_first else OLDEST_VERSION
    return {"cdiVersion": version, "kind": kind, "devices": entries}


class Specs:
    """The CDI specs of this node's devices, a file for each kind of ours; other kinds are somebody else's."""

    def __init__(self, config: Injection, devices: Devices) -> None:
        self._config = config
        self._devices = devices
        self._left_out: set[str] = set()

    def keep(self) -> None:
        """Makes the files say what the devices are now; raises Unavailable where that cannot be done.

        For every start of a container too, so it writes only what differs.
        """
        kinds: dict[str, list[Device]] = {OUR_GPU_KIND: [], OUR_TPU_KIND: []}
        for device in self._devices.now:
            kind = _kind(device, self._config)
            if kind in kinds and self._can_be_named(device):
                kinds[kind].append(present(device))
        for kind, devices in kinds.items():
            path = self._config.cdi_dir / f"{kind.replace('/', '-')}.json"
            try:
                _keep_file(path, spec(kind, devices) if devices else None)
            except OSError as error:
                raise Unavailable(
                    f"the CDI spec of {kind} cannot be written: {error}: the plugin needs {path.parent} of the node, "
                    "writable (injection.cdi_dir)"
                ) from error

    async def run(self, stop: asyncio.Event) -> None:
        """Keeps them at each change of the devices, until ``stop``."""
        while not stop.is_set():
            changed = self._devices.next_change()
            try:
                self.keep()
            except Unavailable as error:
                # Each start of a container tries again, and says why it cannot start.
                logger.warning("%s", error)
            await first_of(stop, changed)

    def _can_be_named(self, device: Device) -> bool:
        try:
            qualified_name(device, self._config)
        except InvalidRequest as error:
            if device.id not in self._left_out:
                self._left_out.add(device.id)
                logger.warning("left out of the CDI spec: %s", error)
            return False
        return True


def _kind(device: Device, config: Injection) -> str:
    return config.cdi_gpu_kind if device.accelerator is Accelerator.GPU else OUR_TPU_KIND


def _keep_file(path: Path, content: dict[str, Any] | None) -> None:
    if content is None:
        # A spec has at least one device.
        path.unlink(missing_ok=True)
        return
    text = json.dumps(content, indent=1).encode()
    if path.is_file() and path.read_bytes() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text)
