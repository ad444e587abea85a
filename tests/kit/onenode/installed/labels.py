"""The labels of the Node, and whose they are."""

import json

from labeller.names import FIELD_MANAGER
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node


def labels(node: Node) -> dict[str, str]:
    """The Node's."""
    found: dict[str, str] = json.loads(node.kubectl("get", f"node/{NODE_NAME}", "-o", "jsonpath={.metadata.labels}"))
    return found


def ours(node: Node) -> set[str]:
    """The labels that the API server keeps as the labeller's."""
    shown = node.kubectl(
        "get", f"node/{NODE_NAME}", "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields}"
    )
    return {
        name.removeprefix("f:")
        for entry in json.loads(shown)
        if (entry["manager"], entry["operation"]) == (FIELD_MANAGER, "Apply")
        for name in entry["fieldsV1"]["f:metadata"]["f:labels"]
        if name.startswith("f:")
    }
