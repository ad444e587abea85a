"""On which devices ``edgeshare run`` starts: what its options ask for, and which of a node's devices that is."""

from collections.abc import Iterable
from dataclasses import dataclass

from edgeshare.contract.accelerator_kind import EDGETPU, GPU, AcceleratorKind
from edgeshare.contract.errors import InvalidRequest, NoRoom, NotFound
from edgeshare.contract.units import UNITS_PER_DEVICE, memory_cap_mib, parse_request_percent
from edgeshare.v1.status_pb2 import DeviceStatus


@dataclass(frozen=True)
class Choice:
    """What the devices of an allocation have to be."""

    devices: int
    request_percent: int
    """Of each device."""
    memory_mib: int
    """Of each device; 0: the request's fraction of it."""
    name: str | None
    """The index or id of the one device wanted, or None: the one with most units free."""
    kind: AcceleratorKind = GPU


def choice_of(percent: int, memory_mib: int | None, gpu: str | None, tpu: str | None) -> Choice:
    """What the options say of the devices. Raises InvalidRequest where they contradict each other."""
    devices, request_percent = parse_request_percent(percent)
    if gpu is not None and tpu is not None:
        raise InvalidRequest("--gpu and --tpu name two devices: give one of them, and run the other within")
    kind = GPU if tpu is None else EDGETPU
    if not kind.has_memory and memory_mib is not None:
        raise InvalidRequest(f"--memory-mib caps the memory of a GPU, and an {kind.word} has none: leave it out")
    name = gpu if tpu is None else tpu or None
    if name is not None and devices > 1:
        raise InvalidRequest(
            f"--{kind.prefix} names one {kind.word}, but {percent} percent are {devices}: leave out the name"
        )
    return Choice(devices, request_percent, memory_mib or 0, name, kind)


def choose_devices(devices: Iterable[DeviceStatus], choice: Choice) -> list[str]:
    """The ids of the devices to use: the one that was named, or those with most units free, then with
    most memory free, then the first. Raises NotFound for a name that no device has, NoRoom where too few
    have room."""
    devices = [device for device in devices if (device.accelerator or GPU.accelerator) == choice.kind.accelerator]
    if choice.name is not None:
        return [_named_device(devices, choice.name, choice.kind).id]
    fitting = [device for device in devices if _fits(device, choice)]
    if len(fitting) < choice.devices:
        raise NoRoom(_no_room_text(devices, choice))
    fitting.sort(key=lambda device: (device.allocated_percent, -_free_memory_mib(device), device.index))
    return [device.id for device in fitting[: choice.devices]]


def _named_device(devices: list[DeviceStatus], name: str, kind: AcceleratorKind) -> DeviceStatus:
    for device in devices:
        if name in (str(device.index), device.id):
            return device
    known = ", ".join(f"{device.index} ({device.id})" for device in devices) or "none"
    raise NotFound(f"--{kind.prefix} {name}: no such {kind.word} here; there are: {known}")


def _fits(device: DeviceStatus, choice: Choice) -> bool:
    memory_mib = memory_cap_mib(choice.memory_mib, device.memory_mib, choice.request_percent)
    free_percent = UNITS_PER_DEVICE - device.allocated_percent
    has_room = free_percent >= choice.request_percent and _free_memory_mib(device) >= memory_mib
    return device.healthy and has_room


def _free_memory_mib(device: DeviceStatus) -> int:
    return device.memory_mib - device.allocated_memory_mib


def _no_room_text(devices: list[DeviceStatus], choice: Choice) -> str:
    memory = f" and {choice.memory_mib} MiB" if choice.memory_mib else ""
    wanted = f"{choice.request_percent} percent{memory}"
    word = choice.kind.word
    free = "; ".join(_free_text(device, word) for device in devices)
    return (
        f"too few {word}s have {wanted} free ({choice.devices} needed): {free or f'there is no {word}'}; "
        "ask for less, or wait until others end"
    )


def _free_text(device: DeviceStatus, word: str) -> str:
    if not device.healthy:
        return f"{word} {device.index} is unhealthy ({device.cause})"
    free_percent = UNITS_PER_DEVICE - device.allocated_percent
    memory = f" and {_free_memory_mib(device)} MiB" if device.memory_mib else ""
    return f"{word} {device.index} has {free_percent} percent{memory} free"
