"""The files that a device plugin keeps of a GPU's allocations, as one that has just started finds them."""

import stat
from collections.abc import Mapping
from pathlib import Path

from deviceplugin.allocations.records import Records
from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.inject.cdi import Specs
from deviceplugin.inject.library import Library
from deviceplugin.live_config import Settings
from deviceplugin.node_events import NodeEvents
from deviceplugin.units.ledger import Ledger
from edgeshare.contract.accelerator_kind import GPU as GPUS
from edgeshare.contract.accelerator_kind import AcceleratorKind
from edgeshare.contract.devices import Device

GPU = Device("GPU-a", 0, "Simulated", 8192, paths=("/dev/null", "/dev/no-such-node"))
UNITS = frozenset({"GPU-a::00", "GPU-a::01"})
WHOLE = frozenset(f"GPU-a::{unit:02}" for unit in range(100))


def new_store(
    tmp_path: Path,
    library: Library,
    config: str = "{}",
    kind: AcceleratorKind = GPUS,
    ledgers: Mapping[AcceleratorKind, Ledger] | None = None,
) -> Store:
    """As of a plugin that has just started, with GPU and this configuration."""
    file = tmp_path / "deviceplugin.yaml"
    file.write_text(config)
    ledgers = ledgers or {kind: Ledger()}
    settings, devices = Settings(file), Devices()
    devices.set([GPU])
    specs = Specs(tmp_path / "cdi", settings, devices, ledgers.values(), NodeEvents())
    records = Records(tmp_path / f"state/{kind.resource}")
    return Store(kind, ledgers, records, library, tmp_path / "run", settings, specs)


def mode(path: Path) -> int:
    """Who may read, write and execute it."""
    return stat.S_IMODE(path.stat().st_mode)


def newer(folder: Path, source: Path) -> Library:
    """The library in a newer version, which lies in ``folder`` beside what is there."""
    source.write_bytes(b"second version")
    library = Library(folder, source)
    library.install()
    return library
