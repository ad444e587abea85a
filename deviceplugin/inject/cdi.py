"""Specs of the Container Device Interface: what a container runtime does for a device that is asked for by name.

Fields, and the rules for names, are those of its SPEC.md (github.com/cncf-tags/container-device-interface).
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from deviceplugin.devices.device_list import Devices
from deviceplugin.files import remove_unfinished, write_file
from deviceplugin.injection_config import OUR_VENDOR, Injection
from deviceplugin.live_config import Settings
from deviceplugin.node_events import NodeEvents, Reason
from deviceplugin.units.ledger import Ledger
from edgeshare.contract.accelerator_kind import GPU, KINDS
from edgeshare.contract.devices import Accelerator, Device, is_device_id
from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.inventory.tree import Tree
from edgeshare.waiting import first_of

OUR_KINDS = {accelerator: f"{OUR_VENDOR}/{kind.prefix}" for accelerator, kind in KINDS.items()}
"""By kind of device."""

PERMISSIONS = "rw"
"""Where none are given, CDI lets the container make nodes of the device, too."""

OLDEST_VERSION = "0.3.0"
"""The oldest version that has what a spec uses is read by the most runtimes."""

DIGIT_FIRST_VERSION = "0.5.0"
"""The first in which a name may begin with a digit, as a Jetson's serial and an EdgeTPU's address do."""


def present(device: Device, root: Path) -> Device:
    """The device with those of its nodes that are there, on a machine whose files are seen below ``root``: a runtime
    refuses a container for one that is not."""
    tree = Tree(root)
    return replace(device, paths=tuple(node for node in device.paths if tree.exists(node)))


def qualified_name(device: Device, config: Injection) -> str:
    """``kind=id``; raises InvalidRequest where the id cannot be a CDI name."""
    if not is_device_id(device.id):
        raise InvalidRequest(
            f"the device id {device.id!r} cannot be a CDI name, which has letters, digits and, between them, any of "
            "_ . : - : give the device another id, or set injection.devices to device-nodes"
        )
    return f"{_kinds(config)[device.accelerator]}={device.id}"


def _kinds(config: Injection) -> dict[Accelerator, str]:
    """The kinds by which containers ask: GPUs' may be another's."""
    return {**OUR_KINDS, GPU.accelerator: config.cdi_gpu_kind}


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
    """The CDI specs of this node's devices in ``folder``, a file for each kind of ours; other kinds are others'.

    They are there while the configuration wants containers to name devices to CDI, and then while one in
    ``ledgers`` does.
    """

    def __init__(
        self, folder: Path, settings: Settings, devices: Devices, ledgers: Iterable[Ledger], node_events: NodeEvents
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._devices = devices
        self._ledgers = tuple(ledgers)
        self._node_events = node_events
        self._ours: set[str] = set()
        """The kinds whose file this plugin has written, or found as it should be."""

    def keep(self) -> None:
        """Makes the files say what the devices are now; raises Unavailable where that cannot be done.

        For every start of a container too, so it writes only what differs.
        """
        devices = self._by_kind()
        wanted = self._wanted_kinds()
        for kind in OUR_KINDS.values():
            path = self._path(kind)
            try:
                if kind in wanted and devices[kind]:
                    self._ours.add(kind)
                    _keep_file(path, spec(kind, devices[kind]))
                elif kind in self._ours | wanted:
                    # A spec has at least one device.
                    path.unlink(missing_ok=True)
                    self._ours.discard(kind)
            except OSError as error:
                raise Unavailable(
                    f"the CDI spec of {kind} cannot be written: {error}: the plugin needs {self._folder} of the node, "
                    "writable (cdi_dir)"
                ) from error

    def keep_or_tell(self) -> None:
        """Keeps them where nobody waits for it: what is wrong is told of the node. Who then asks for a device is
        refused, with the same reason."""
        try:
            self.keep()
        except Unavailable as error:
            self._node_events.tell(Reason.CDI_REFUSED, [str(error)])
        else:
            self._node_events.tell(Reason.CDI_REFUSED, [])

    async def run(self, stop: asyncio.Event) -> None:
        """Keeps them at each change of the devices and of the configuration, until ``stop``."""
        for kind in OUR_KINDS.values():
            remove_unfinished(self._folder, self._path(kind).name)
        while not stop.is_set():
            changes = self._devices.next_change(), self._settings.next_change()
            self.keep_or_tell()
            await first_of(stop, *changes)

    def _path(self, kind: str) -> Path:
        return self._folder / f"{kind.replace('/', '-')}.json"

    def _wanted_kinds(self) -> set[str]:
        names = (name for ledger in self._ledgers for allocation in ledger for name in allocation.cdi_names)
        kinds = {name.partition("=")[0] for name in names}
        config = self._settings.now.injection
        return kinds.union(_kinds(config).values()) if config.devices == "cdi" else kinds

    def _by_kind(self) -> dict[str, list[Device]]:
        by_kind: defaultdict[str, list[Device]] = defaultdict(list)
        root = self._settings.now.inventory.root
        for device in self._devices.now:
            # Who asks for another is told.
            if is_device_id(device.id):
                by_kind[OUR_KINDS[device.accelerator]].append(present(device, root))
        return by_kind


def _keep_file(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=1).encode()
    if path.is_file() and path.read_bytes() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text)
