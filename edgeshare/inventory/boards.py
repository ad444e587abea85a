"""What a Jetson's devicetree says of its GPU."""

import re
from dataclasses import dataclass

from edgeshare.contract.devices import Device, is_device_id
from edgeshare.contract.errors import Unavailable

SOCS = ("nvidia,tegra210", "nvidia,tegra186", "nvidia,tegra194", "nvidia,tegra234", "nvidia,tegra264")
"""TX1 and Nano, TX2, Xavier, Orin, Thor. (Linux, Documentation/devicetree/bindings/arm/tegra.yaml.)"""

MODULES = (
    ("p3834", "NVIDIA Jetson AGX Thor"),
    ("p3767-0000", "NVIDIA Jetson Orin NX"),
    ("p3767-0001", "NVIDIA Jetson Orin NX"),
    ("p3767", "NVIDIA Jetson Orin Nano"),
    ("p3701", "NVIDIA Jetson AGX Orin"),
    ("p3668", "NVIDIA Jetson Xavier NX"),
    ("p2888", "NVIDIA Jetson AGX Xavier"),
    ("p2972", "NVIDIA Jetson AGX Xavier"),
    ("jetson-xavier", "NVIDIA Jetson AGX Xavier"),
    ("p3636", "NVIDIA Jetson TX2 NX"),
    ("p3310", "NVIDIA Jetson TX2"),
    ("p3489", "NVIDIA Jetson TX2"),
    ("p2771", "NVIDIA Jetson TX2"),
    ("quill", "NVIDIA Jetson TX2"),
    ("p3448", "NVIDIA Jetson Nano"),
    ("p3450", "NVIDIA Jetson Nano"),
    ("p3541", "NVIDIA Jetson Nano"),
    ("jetson-nano", "NVIDIA Jetson Nano"),
    ("p2180", "NVIDIA Jetson TX1"),
    ("p2371", "NVIDIA Jetson TX1"),
    ("jetson-cv", "NVIDIA Jetson TX1"),
)
"""Part of a compatible string → model, the first that is found. Carriers are not in it: p3509 carries both a TX2 NX and
a Xavier NX. Numbers are NVIDIA's (Jetson Linux Developer Guide, "Jetson Module EEPROM Layout" and "Quick Start"); the
strings stand in Linux's arch/arm64/boot/dts/nvidia and in NVIDIA's jetson-gpio (gpio_pin_data.py)."""

SERIAL_LENGTH_MIN = 4
"""A serial number has 13 digits; of fewer than this it is part of one."""

MEMORY_LINE = re.compile(rb"^(MemTotal|MemAvailable): +([0-9]{1,12}) kB$", re.MULTILINE)

KIB_PER_MIB = 1024

RESERVE_MIB = 1024
"""As shipped, what a Jetson's system keeps of its memory."""


@dataclass(frozen=True)
class Memory:
    """A machine's memory, as ``/proc/meminfo`` has it."""

    total_mib: int
    available_mib: int


@dataclass(frozen=True)
class Board:
    """What was found on a Jetson."""

    compatible: tuple[str, ...]
    model: str
    """The devicetree's own; differs from one release of Jetson Linux to the next."""
    serial: str
    memory: Memory
    nodes: tuple[str, ...]
    """The GPU's device nodes."""


def is_tegra(compatible: tuple[str, ...]) -> bool:
    """Whether a devicetree is of a machine with one of NVIDIA's own processors, known here or not."""
    return any(name.startswith("nvidia,tegra") for name in compatible)


def is_jetson(compatible: tuple[str, ...]) -> bool:
    """Whether a devicetree is one of NVIDIA's. Raises Unavailable for one whose processor is not known here."""
    if not any(name.startswith("nvidia,") for name in compatible):
        return False
    if is_known(compatible):
        return True
    raise Unavailable(
        f"the devicetree's compatible names no Tegra from X1 to Thor: {', '.join(compatible)[:200]}; "
        "list its GPU under inventory.declared"
    )


def is_known(compatible: tuple[str, ...]) -> bool:
    """Whether a devicetree names a Tegra from X1 to Thor."""
    return any(soc in compatible for soc in SOCS)


def model_of(compatible: tuple[str, ...], model: str) -> str:
    """What the GPU of a Jetson is called; ``model`` is the devicetree's own, which may be empty."""
    return module_of(compatible) or model or "NVIDIA Jetson"


def module_of(compatible: tuple[str, ...]) -> str | None:
    """The name of the Jetson whose devicetree says so; None for one that is not known here."""
    return next((model for part, model in MODULES if any(part in name for name in compatible)), None)


def parse_memory(content: bytes | None) -> Memory:
    """Reads ``/proc/meminfo``. Raises Unavailable where it lacks a line."""
    found = {name: int(kib) // KIB_PER_MIB for name, kib in MEMORY_LINE.findall(content or b"")}
    try:
        return Memory(found[b"MemTotal"], found[b"MemAvailable"])
    except KeyError as error:
        raise Unavailable(f"/proc/meminfo has no line {error.args[0].decode()}: is /proc mounted here?") from error


def gpu_of(board: Board, reserve_mib: int) -> Device:
    """A Jetson's GPU. Its memory is the machine's less the reserve. Raises Unavailable."""
    if not is_device_id(board.serial) or len(board.serial) < SERIAL_LENGTH_MIN or set(board.serial) <= set("0:._-"):
        raise Unavailable(
            "the devicetree has no usable serial-number: the firmware was not given one; "
            "list the GPU under inventory.declared, with an id of your own"
        )
    if board.memory.total_mib <= reserve_mib:
        raise Unavailable(
            f"a reserve of {reserve_mib} MiB leaves nothing of this Jetson's {board.memory.total_mib} MiB: "
            "lower inventory.jetson_reserve_mib"
        )
    return Device(
        id=board.serial,
        index=0,
        model=model_of(board.compatible, board.model),
        memory_mib=board.memory.total_mib - reserve_mib,
        paths=board.nodes,
        healthy=bool(board.nodes),
        cause="" if board.nodes else "its driver is not loaded: there is no device node of it in /dev",
        source="jetson",
    )
