"""AcceleratorNodes, from their plain JSON: what a node's plugin tells of its devices and of its allocations. Pure; each
is written by a node about itself, and may say anything."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.object_names import NAME_MAX
from edgeshare.contract.units import MAX_DEVICES_PER_ALLOCATION, MEMORY_MIB_MAX, UNITS_PER_DEVICE
from edgeshare.kube.faults import first_fault

# As the custom resource definition has them (deploy/chart/crds/acceleratornodes.yaml).
DEVICES_MAX = 256
ALLOCATIONS_MAX = 25_600

Name = Annotated[str, Field(max_length=NAME_MAX)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class Device(_Part):
    """A device that the node shares."""

    id: str
    kind: str
    model: str
    memory_mib: int = Field(alias="memoryMiB", ge=0, le=MEMORY_MIB_MAX)
    healthy: bool
    cause: str = ""
    """Why it is not healthy."""


class Pod(_Part):
    """Whose an allocation is; all empty while that is not known."""

    namespace: Name = ""
    name: Name = ""
    uid: str = ""


class Allocation(_Part):
    """What one container has."""

    id: str
    devices: list[str] = Field(min_length=1, max_length=MAX_DEVICES_PER_ALLOCATION)
    units_each: int = Field(alias="unitsEach", ge=1, le=UNITS_PER_DEVICE)
    memory_mib: int = Field(alias="memoryMiB", ge=0, le=MEMORY_MIB_MAX)
    """Of each of its devices."""
    pod: Pod = Pod()
    container: str = ""


class Status(_Part):
    """What a node has, and who has it."""

    devices: list[Device] = Field(default=[], max_length=DEVICES_MAX)
    allocations: list[Allocation] = Field(default=[], max_length=ALLOCATIONS_MAX)


class _Metadata(_Part):
    name: str = Field(min_length=1)


class _Named(_Part):
    metadata: _Metadata


class _AcceleratorNode(_Part):
    status: Status = Status()


def name_of(thing: object) -> str:
    """What an AcceleratorNode is called. Raises InvalidRequest for what has no name."""
    try:
        return _Named.model_validate(thing).metadata.name
    except ValidationError as error:
        raise InvalidRequest(f"expected an AcceleratorNode with metadata.name: {first_fault(error)}") from error


def status_of(thing: object) -> Status:
    """What it tells. Raises InvalidRequest, with the first thing that is wrong, for nonsense."""
    try:
        return _AcceleratorNode.model_validate(thing).status
    except ValidationError as error:
        raise InvalidRequest(first_fault(error)) from error
