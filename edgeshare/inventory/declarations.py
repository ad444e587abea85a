"""Devices listed by hand, made out of what the configuration says and of what is there."""

from collections.abc import Mapping
from dataclasses import dataclass

from edgeshare.contract.devices import Accelerator, Device


@dataclass(frozen=True)
class Declaration:
    """One entry of the list: one device, or one for each match of ``each``."""

    id: str
    model: str
    accelerator: Accelerator
    memory_mib: int
    each: str
    """A pattern; empty: the entry is one device."""
    paths: tuple[str, ...]
    """Patterns of what it needs besides; a device of which one fits nothing is not well."""
    numa_node: int


def devices_of(declarations: tuple[Declaration, ...], matches: Mapping[str, list[str]]) -> list[Device]:
    """The devices, in the list's order. ``matches`` has the paths of every pattern in it."""
    found: list[Device] = []
    for declaration in declarations:
        if declaration.each:
            for path in matches[declaration.each]:
                name = f"{declaration.id}-{path.rpartition('/')[2]}"
                found.append(_device(declaration, name, (path,), matches, _next_index(declaration, found)))
        else:
            found.append(_device(declaration, declaration.id, (), matches, _next_index(declaration, found)))
    return found


def _device(
    declaration: Declaration, device_id: str, own: tuple[str, ...], matches: Mapping[str, list[str]], index: int
) -> Device:
    missing = [pattern for pattern in declaration.paths if not matches[pattern]]
    return Device(
        id=device_id,
        index=index,
        model=declaration.model,
        memory_mib=declaration.memory_mib,
        accelerator=declaration.accelerator,
        numa_node=declaration.numa_node,
        paths=own + tuple(path for pattern in declaration.paths for path in matches[pattern]),
        healthy=not missing,
        cause=f"{', '.join(missing)} is not there" if missing else "",
        source="declared",
    )


def _next_index(declaration: Declaration, found: list[Device]) -> int:
    return sum(device.accelerator is declaration.accelerator for device in found)
