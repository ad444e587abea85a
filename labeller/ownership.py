"""Which of a Node's labels are ours, which are others', and what is to be applied so that theirs stay as they are.

The API server keeps in ``metadata.managedFields`` who set which field: Kubernetes, "Server-Side Apply"."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from edgeshare.contract.errors import Unavailable
from labeller.names import FIELD_MANAGER

Json = dict[str, Any]
Kind = TypeVar("Kind", dict[str, Any], list[Any], str)

NOBODY = "nobody that is known"
"""The owner of a label that was set before the API server kept account, or whose account somebody cleared."""


@dataclass(frozen=True)
class NodeLabels:
    """A Node's labels as they are."""

    uid: str
    values: Mapping[str, str]
    ours: frozenset[str]
    """Those that were applied by our field manager, perhaps with others."""
    others: Mapping[str, str]
    """Label → the field manager beside ours that set it; of several, the first of their names."""


@dataclass(frozen=True)
class Conflict:
    """A label that somebody else set to another value."""

    label: str
    wanted: str
    found: str
    owner: str

    def __str__(self) -> str:
        return (
            f"label {self.label}={self.found} was set by {self.owner} and stays; ours would be '{self.wanted}': delete "
            "the label and ours follows, or switch it off in the configuration"
        )


@dataclass(frozen=True)
class Plan:
    """What to apply: the labels that are to be ours, all of them."""

    labels: Mapping[str, str]
    conflicts: tuple[Conflict, ...]
    before: Mapping[str, str]
    """Those that are ours now."""


def node_labels(node: object) -> NodeLabels:
    """Reads a Node as the API server answers it. Raises Unavailable where it is none: nothing may be built on that."""
    metadata = _part(_kind(node, dict, "it"), "metadata", dict)
    uid = _part(metadata, "uid", str)
    if not uid:
        raise _no_node("metadata.uid is missing")
    values = _part(metadata, "labels", dict)
    for value in values.values():
        _kind(value, str, "a label's value")
    ours: set[str] = set()
    others: dict[str, str] = {}
    entries = [_kind(entry, dict, "managedFields") for entry in _part(metadata, "managedFields", list)]
    for entry in sorted(entries, key=_owner):
        # Whoever updates under our name has not applied it: the label would stay when we let it go.
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            ours |= _labels_in(entry)
        else:
            for label in _labels_in(entry):
                others.setdefault(label, _owner(entry))
    return NodeLabels(uid, values, frozenset(ours & values.keys()), others)


def plan(node: NodeLabels, wanted: Mapping[str, str], complete: bool) -> Plan:
    """What makes the node's labels what is wanted, without touching others'. ``complete`` is false where not all that
    there is could be found: then none of ours is changed or goes."""
    before = {label: node.values[label] for label in sorted(node.ours)}
    target = dict(wanted) if complete else {**wanted, **before}
    conflicts = []
    for label, value in sorted(target.items()):
        found = node.values.get(label, value)
        if found != value and (label in node.others or label not in node.ours):
            conflicts.append(Conflict(label, value, found, node.others.get(label, NOBODY)))
            del target[label]
    return Plan(target, tuple(conflicts), before)


def _labels_in(entry: Json) -> set[str]:
    """The labels that an entry of managedFields is about: FieldsV1 writes ``f:`` before the name of each field."""
    labels = _part(_part(_part(entry, "fieldsV1", dict), "f:metadata", dict), "f:labels", dict)
    return {name.removeprefix("f:") for name in labels if name.startswith("f:")}


def _owner(entry: Json) -> str:
    # Somebody else's text, fit for a message of one line.
    return ascii(entry.get("manager"))


def _part(whole: Json, key: str, kind: type[Kind]) -> Kind:
    """What is under a key; where nothing is, an empty one of its kind."""
    value = whole.get(key)
    return kind() if value is None else _kind(value, kind, key)


def _kind(value: object, kind: type[Kind], what: str) -> Kind:
    if not isinstance(value, kind):
        raise _no_node(f"{what} is no {kind.__name__}")
    return value


def _no_node(why: str) -> Unavailable:
    return Unavailable(f"the API server's answer is no Node: {why}: look at what answers at its address")
