"""Server-side apply of labels as an API server does it: who set what is kept in the object's managedFields."""

from typing import Any

Json = dict[str, Any]


def apply_labels(thing: Json, manager: str, labels: dict[str, str], force: bool) -> list[Json]:
    """Makes these the labels that a manager applied: those that it applied before and does not now go, unless others
    have them too. Returns the conflicts, as causes of a Status; with any, nothing is changed."""
    there = thing["metadata"].setdefault("labels", {})
    others = {
        label: entry
        for entry in thing["metadata"].setdefault("managedFields", [])
        if (entry["manager"], entry["operation"]) != (manager, "Apply")
        for label in owned(entry)
    }
    conflicts = [label for label, value in labels.items() if label in others and there[label] != value]
    if conflicts and not force:
        return [
            {
                "reason": "FieldManagerConflict",
                "message": f'conflict with "{others[label]["manager"]}" using v1',
                "field": f".metadata.labels.{label}",
            }
            for label in conflicts
        ]
    for entry in thing["metadata"]["managedFields"]:
        if (entry["manager"], entry["operation"]) == (manager, "Apply"):
            for label in owned(entry) - labels.keys() - others.keys():
                there.pop(label, None)
        else:
            disown(entry, set(conflicts))
    there.update(labels)
    _set_entry(thing, manager, "Apply", set(labels))
    return []


def update_labels(thing: Json, manager: str, labels: dict[str, str | None]) -> None:
    """Sets labels, or takes those away that are None, as `kubectl label` does: what changes is nobody else's then."""
    there = thing["metadata"].setdefault("labels", {})
    changed = {label for label, value in labels.items() if there.get(label) != value}
    for entry in thing["metadata"].setdefault("managedFields", []):
        disown(entry, changed)
    mine = {entry["manager"]: owned(entry) for entry in thing["metadata"]["managedFields"]}.get(manager, set())
    for label in changed:
        there.pop(label, None)
        if (value := labels[label]) is not None:
            there[label] = value
            mine = mine | {label}
    _set_entry(thing, manager, "Update", mine)


def owned(entry: Json) -> set[str]:
    """The labels that an entry of managedFields names."""
    fields = entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {})
    return {name[2:] for name in fields if name.startswith("f:")}


def disown(entry: Json, labels: set[str]) -> None:
    """An entry without these labels."""
    fields = entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {})
    for label in labels:
        fields.pop(f"f:{label}", None)


def _set_entry(thing: Json, manager: str, operation: str, labels: set[str]) -> None:
    kept = [
        entry
        for entry in thing["metadata"]["managedFields"]
        if (entry["manager"], entry["operation"]) != (manager, operation)
    ]
    fields: Json = {"f:metadata": {"f:labels": {f"f:{label}": {} for label in sorted(labels)}}}
    entry = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1"}
    thing["metadata"]["managedFields"] = [*kept, {**entry, "fieldsV1": fields}] if labels else kept
