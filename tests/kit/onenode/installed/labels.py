"""The labels of the Node, and whose they are."""

from typing import Any

from labeller.names import FIELD_MANAGER
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node


def labels(node: Node) -> dict[str, str]:
    """The Node's."""
    found: dict[str, str] = _metadata(node)["labels"]
    return found


def ours(node: Node) -> set[str]:
    """The labels that the API server keeps as the labeller's."""
    return {
        name.removeprefix("f:")
        for entry in _metadata(node)["managedFields"]
        if (entry["manager"], entry["operation"]) == (FIELD_MANAGER, "Apply")
        for name in entry["fieldsV1"]["f:metadata"]["f:labels"]
        if name.startswith("f:")
    }


def _metadata(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.told(f"/api/v1/nodes/{NODE_NAME}")["metadata"]
    return found
