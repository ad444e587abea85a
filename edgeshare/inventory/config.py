"""What can be set about finding devices: the part ``inventory`` of a configuration; units end the keys."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Accelerator, is_device_id
from edgeshare.contract.units import MEMORY_MIB_MAX
from edgeshare.inventory.boards import RESERVE_MIB
from edgeshare.inventory.declarations import Declaration


def _device_id(text: str) -> str:
    if not is_device_id(text):
        raise ValueError("is no name for a device: at most 59 letters and digits, with '.', '_', ':' and '-' between")
    return text


def _pattern(text: str) -> str:
    if not text.startswith("/") or "**" in text or "\0" in text or ".." in text.split("/"):
        raise ValueError("has to be an absolute path, in which *, ? and […] stand for part of a name; no **, no ..")
    return text


Pattern = Annotated[str, AfterValidator(_pattern), Field(min_length=2, max_length=256)]


class DeclaredDevice(BaseModel):
    """A device that nothing finds by itself, or several of a kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, AfterValidator(_device_id)]
    """Its name for the kubelet, never to be given to another. With ``each``: the beginning of their names."""

    model: Annotated[str, Field(min_length=1, max_length=63)]

    accelerator: Accelerator = Accelerator.GPU
    """Which resource it is a part of."""

    memory_mib: Annotated[int, Field(ge=0, le=MEMORY_MIB_MAX)] = 0
    """What may be shared out of its memory. A GPU needs some."""

    each: Pattern | None = None
    """A pattern of paths, each of which is a device of its own, named ``<id>-<last part of the path>``."""

    paths: tuple[Pattern, ...] = ()
    """Patterns of all that a container needs; the device is well while each of them fits something."""

    numa_node: Annotated[int, Field(ge=-1, le=1023)] = -1

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.each is None and not self.paths:
            raise ValueError(f"{self.id}: name the paths that a container needs, or a pattern under each")
        kind = KINDS[self.accelerator]
        if kind.has_memory and not self.memory_mib:
            raise ValueError(f"{self.id}: a {kind.word} needs memory_mib, of which each share gets its part")
        return self

    def declaration(self) -> Declaration:
        """This device as the inventory takes it."""
        return Declaration(
            id=self.id,
            model=self.model,
            accelerator=self.accelerator,
            memory_mib=self.memory_mib,
            each=self.each or "",
            paths=self.paths,
            numa_node=self.numa_node,
        )


class InventoryConfig(BaseModel):
    """Where devices are looked for. Each source finds nothing, and says nothing, on a machine without its hardware."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: tuple[Literal["nvml", "jetson", "edgetpu"], ...] = ("nvml", "jetson", "edgetpu")
    """Which kinds are looked for, besides those declared."""

    root: Path = Path("/")
    """Where the node's ``/dev``, ``/proc`` and ``/sys`` are seen. A container sees neither the node's ``/dev`` nor
    ``/sys/firmware`` by itself: mounted below ``/host``, they are."""

    jetson_reserve_mib: Annotated[int, Field(ge=0, le=MEMORY_MIB_MAX)] = RESERVE_MIB
    """What a Jetson's system keeps of the memory that GPU and processors have in common. The kubelet hands out the same
    memory by pods' own limits: a node that runs much besides needs a larger reserve."""

    declared: tuple[DeclaredDevice, ...] = ()
    """Devices listed by hand."""

    @model_validator(mode="after")
    def _no_name_twice(self) -> Self:
        names = [device.id for device in self.declared]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"declared names {', '.join(twice)} twice: give each device an id of its own")
        return self
