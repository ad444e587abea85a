"""What is told to programs: the fields of a status, as JSON or YAML, once or of each look."""

import json
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

import click
import yaml
from google.protobuf.json_format import MessageToDict

from edgeshare.v1.status_pb2 import NodeStatus

if TYPE_CHECKING:
    # Who asks for a node does without what reads a cluster's objects.
    from edgeshare.cli.status.cluster import Cluster
    from edgeshare.shown.used import Used

Json = dict[str, Any]


class Form(Enum):
    """How it is written."""

    JSON = "json"
    YAML = "yaml"


def form_of(as_json: bool, as_yaml: bool) -> Form | None:
    """What two options ask for; None is for people. Raises UsageError where both are given."""
    if as_json and as_yaml:
        raise click.UsageError("--json and --yaml: name one of them")
    if as_json:
        return Form.JSON
    return Form.YAML if as_yaml else None


def of_node(status: NodeStatus) -> Json:
    """Every field of GetNodeStatus."""
    return MessageToDict(status, always_print_fields_with_no_presence=True)


def of_cluster(cluster: "Cluster") -> Json:
    """What the API server knows."""
    return cluster.model_dump()


def of_service(used: "Used") -> Json:
    """Every field of GetClusterStatus, of all nodes, and the pods that wait."""
    told = MessageToDict(used.state, always_print_fields_with_no_presence=True)
    told["waiting"] = [pod.model_dump() for pod in used.waiting]
    told["waitingUnknown"] = used.waiting_unknown
    return told


def write(told: Json, form: Form) -> None:
    """Prints it for who reads it whole."""
    if form is Form.JSON:
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo(_yaml(told), nl=False)


def write_look(told: Json, seen_s: float, stale: str, form: Form) -> None:
    """Prints one of many: a line of JSON, or a YAML document of a stream. ``seen_s`` is the Unix time at which it was
    seen, ``stale`` why that is not now; empty where it is."""
    seen = datetime.fromtimestamp(seen_s, UTC).isoformat(timespec="milliseconds")
    look = {"seen": seen, "stale": stale, **told}
    # What is written is flushed, so that a reader has each look as it comes.
    click.echo(json.dumps(look) if form is Form.JSON else f"---\n{_yaml(look)}", nl=form is Form.JSON)


def _yaml(told: Json) -> str:
    return yaml.safe_dump(told, sort_keys=False, allow_unicode=True)
