"""Nodes as the assigner knows them: what they have for pods."""

from pydantic import BaseModel, Field, ValidationError

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.state.cores import Offer, parse_cores


class _Metadata(BaseModel):
    name: str = Field(min_length=1)


class _Allocatable(BaseModel):
    cpu: str | None = None
    memory: str | None = None


class _Status(BaseModel):
    allocatable: _Allocatable = _Allocatable()


class _Node(BaseModel):
    metadata: _Metadata
    status: _Status = _Status()


def parse_offer(thing: object) -> Offer:
    """From a Node's plain JSON; one that nobody runs tells of nothing. Raises InvalidRequest for what is no Node."""
    try:
        node = _Node.model_validate(thing)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidRequest(f"expected a Node: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    name, allocatable = node.metadata.name, node.status.allocatable
    if allocatable.cpu is None or allocatable.memory is None:
        return Offer(name, None)
    return Offer(name, parse_cores(allocatable.model_dump(), f"Node {name}"))
