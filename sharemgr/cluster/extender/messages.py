"""What kube-scheduler says to an extender, parsed; in JSON the fields are called as in Go (k8s.io/kube-scheduler,
extender/v1/types.go)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NotRequired, TypedDict, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.object_names import NAME_MAX
from edgeshare.kube.json_parts import reader_of
from sharemgr.cluster.state.object_fields import PodFields

NAME = r"^[0-9A-Za-z][0-9A-Za-z._-]*$"
"""What Kubernetes takes for a name or a uid, and a little more; nothing that means something in a path."""

NODES_MAX = 20_000
"""Kubernetes is made for up to 5,000."""

VICTIMS_MAX = 2_000
"""Of one node: Kubernetes is made for 110 pods on each."""

CACHE = "set nodeCacheCapable: true for this extender of kube-scheduler"


class Message(BaseModel):
    """What kube-scheduler says. Fields that later versions add are let through."""

    model_config = ConfigDict(frozen=True)


class Args(Message):
    """The arguments of filter and prioritize."""

    pod: dict[str, Any] = Field(alias="Pod")
    node_names: list[str] | None = Field(default=None, alias="NodeNames", max_length=NODES_MAX)


class BindingArgs(Message):
    """The arguments of bind."""

    name: str = Field(alias="PodName", pattern=NAME, max_length=NAME_MAX)
    namespace: str = Field(alias="PodNamespace", pattern=NAME, max_length=NAME_MAX)
    uid: str = Field(alias="PodUID", pattern=NAME, max_length=NAME_MAX)
    node: str = Field(alias="Node", pattern=NAME, max_length=NAME_MAX)


class MetaPod(Message):
    """A pod by its uid."""

    uid: str = Field(alias="UID", max_length=NAME_MAX)


class MetaVictims(Message):
    """The pods that would be evicted from one node."""

    pods: list[MetaPod] | None = Field(default=None, alias="Pods", max_length=VICTIMS_MAX)
    violations: int = Field(default=0, alias="NumPDBViolations")


class PreemptionArgs(Message):
    """The arguments of preempt."""

    pod: dict[str, Any] = Field(alias="Pod")
    nodes: dict[str, MetaVictims] | None = Field(default=None, alias="NodeNameToMetaVictims", max_length=NODES_MAX)

    @property
    def victims(self) -> dict[str, MetaVictims]:
        """By node. Raises InvalidRequest where it was whole pods that were sent."""
        if self.nodes is None:
            raise InvalidRequest(f"NodeNameToMetaVictims is missing: {CACHE}")
        return self.nodes


@dataclass(slots=True)
class Candidates:
    """A pod, and the nodes that it may go to, as Args say."""

    pod: Mapping[str, Any]
    node_names: list[str] | None

    @property
    def names(self) -> list[str]:
        """The nodes. Raises InvalidRequest where it was whole nodes that were sent."""
        if self.node_names is None:
            raise InvalidRequest(f"NodeNames is missing: {CACHE}")
        return self.node_names


class Binding(NamedTuple):
    """A pod that is to be bound, as BindingArgs say."""

    namespace: str
    name: str
    uid: str
    node: str


class _Args(TypedDict):
    """Args, of whose pod that is read which is looked at."""

    Pod: PodFields
    NodeNames: NotRequired[list[str] | None]


class _BindingArgs(TypedDict):
    """BindingArgs as they come."""

    PodName: str
    PodNamespace: str
    PodUID: str
    Node: str


_read_args = reader_of(_Args)
_read_binding = reader_of(_BindingArgs)
_is_name = re.compile(rf"{NAME[:-1]}\Z").match

M = TypeVar("M", bound=Message)


def parse(model: type[M], body: bytes) -> M:
    """Raises InvalidRequest for what is none."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the message"
        what = f"expected {model.__name__} of kube-scheduler's extender: {where[:200]}: {first['msg']}"
        # A name can hold anything.
        raise InvalidRequest(ascii(what)[1:-1]) from error


def parse_binding(body: bytes) -> Binding:
    """Reads BindingArgs. Raises InvalidRequest for what is none, as ``parse`` does, which takes longer."""
    try:
        read = _read_binding(body)
    except ValueError:
        read = {}
    told = [read.get(key, "") for key in ("PodNamespace", "PodName", "PodUID", "Node")]
    if all(len(each) <= NAME_MAX and _is_name(each) for each in told):
        return Binding(*told)
    args = parse(BindingArgs, body)
    return Binding(args.namespace, args.name, args.uid, args.node)


def parse_args(body: bytes) -> Candidates:
    """Reads Args. Of the pod there may be no more than what is looked at. Raises InvalidRequest for what is none, as
    ``parse`` does, which takes longer."""
    try:
        read = _read_args(body)
        names = read.get("NodeNames")
        if names is None or len(names) <= NODES_MAX:
            return Candidates(read["Pod"], names)
    except ValueError:
        pass
    args = parse(Args, body)
    return Candidates(args.pod, args.node_names)
