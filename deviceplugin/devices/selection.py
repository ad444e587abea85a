"""Which of the devices that are there are shared, as the configuration says."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from deviceplugin.config import NodeConfig, Pick
from edgeshare.contract.devices import Device

LEFT_OUT = "left out by the configuration; containers that have a part of it run on"


@dataclass(frozen=True)
class Selection:
    """What is advertised, and what the configuration got wrong."""

    devices: tuple[Device, ...]
    faults: tuple[str, ...]
    """Each in a line that says what is wrong and what to do."""

    contested: tuple[str, ...]
    """Why devices are not advertised that the configuration would share."""


def select(
    found: Sequence[Device], config: NodeConfig, held: Collection[str], contested: Mapping[str, str] | None = None
) -> Selection:
    """The devices to advertise, of those that were found; ``held`` are the ids of those that containers have units of,
    ``contested`` says of some ids why they must not be handed out, unless the configuration leaves them out anyway.

    One that is left out while containers have it stays listed, as not healthy, until they are over: they may start
    again, and nothing new goes there.
    """
    contested = contested or {}
    devices, refused = [], []
    for device in found:
        shared = _is_shared(device, config)
        reason = contested.get(device.id, "") if shared else LEFT_OUT
        if shared and reason:
            refused.append(reason)
        if not reason:
            devices.append(device)
        elif device.id in held:
            devices.append(replace(device, healthy=False, cause=reason))
    return Selection(tuple(devices), tuple(_faults(found, config)), tuple(refused))


def picks(pick: Pick, device: Device) -> bool:
    """Whether all is true of the device that is given."""
    return (
        # Whoever names a GPU means its MIG devices, too.
        pick.id in (None, device.id, device.parent)
        and pick.index in (None, device.index)
        and pick.kind in (None, device.accelerator)
        and (pick.model is None or _spelled(pick.model) in _models(device))
    )


def _is_shared(device: Device, config: NodeConfig) -> bool:
    if any(picks(pick, device) for pick in config.exclude):
        return False
    return not config.include or any(picks(pick, device) for pick in config.include)


def _faults(found: Sequence[Device], config: NodeConfig) -> Iterable[str]:
    for key, given in (("include", config.include), ("exclude", config.exclude)):
        for pick in given:
            # A model or a kind picks many devices, and on some nodes none: only a certain one can be missing.
            named = pick.id is not None or pick.index is not None
            if named and not any(picks(pick, device) for device in found):
                there = ", ".join(f"{device.index}: {device.id} ({device.model})" for device in found) or "none"
                yield f"{key} names a device that is not there ({pick}): correct it; this node has {there}"
    if found and not any(_is_shared(device, config) for device in found):
        yield f"include and exclude leave none of the {len(found)} devices of this node to share: correct them"


def _models(device: Device) -> set[str]:
    model = _spelled(device.model)
    # NVML names a MIG device by its GPU's model and its own profile, with this between.
    return {model, model.partition(" mig ")[0]} if device.parent else {model}


def _spelled(model: str) -> str:
    return " ".join(model.replace("-", " ").split()).casefold()
