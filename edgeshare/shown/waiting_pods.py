"""The pods that ask for a share and have no node, and why, as their scheduler says."""

from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from edgeshare.contract.accelerator_kind import RESOURCES
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import GPU_MEMORY_MIB
from edgeshare.contract.text import in_one_line
from edgeshare.contract.units import peak
from edgeshare.kube.faults import first_fault
from edgeshare.kube.objects.pod_containers import containers

ASKED = (*RESOURCES, GPU_MEMORY_MIB)
WAITING = "spec.nodeName=,status.phase=Pending"
PODS = "/api/v1/pods"

UNSAID = "its scheduler did not say yet"

LINE_MAX = 2_000
"""Characters: twice what kube-scheduler cuts its messages at."""

Line = Annotated[str, AfterValidator(partial(in_one_line, most=LINE_MAX))]
"""What somebody wrote who may write to an API server, and which is to be shown on a terminal."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Waiting(_Part):
    """A pod that asks for a share and has no node."""

    namespace: str
    pod: str
    asks: dict[str, int]
    """Of all its containers together, by resource."""
    scheduler: str = ""
    why: str = ""
    """As its scheduler says; empty while that did not look at it."""


class _Metadata(_Part):
    name: Line = Field(min_length=1)
    namespace: Line = ""


class _Spec(_Part):
    scheduler_name: Line = Field(default="", alias="schedulerName")


class _Condition(_Part):
    type: str
    status: str
    message: Line = ""


class _State(_Part):
    conditions: list[_Condition] = []


class _WaitingPod(_Part):
    metadata: _Metadata
    spec: _Spec
    status: _State = _State()


def parse_waiting(thing: Any) -> Waiting | None:
    """A pod that has no node; None for one that asks for no share. Raises InvalidRequest for what is no pod."""
    try:
        pod = _WaitingPod.model_validate(thing)
        asking = list(containers(thing["spec"]))
    except ValidationError as error:
        raise InvalidRequest(f"expected a pod: {first_fault(error)}") from error
    # What it takes at a time: as much as its largest plain init container, or all the others together.
    asks = {name: peak((each.asked(name), each.runs_along) for each in asking) for name in ASKED}
    if not any(asks[name] for name in RESOURCES):
        return None
    return Waiting(
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        asks={name: count for name, count in asks.items() if count},
        scheduler=pod.spec.scheduler_name,
        why=next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), ""),
    )
