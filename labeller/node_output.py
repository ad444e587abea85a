"""A Node's labels, by server-side apply: who applies owns just what it applied, and what it applies no more goes."""

from collections.abc import Mapping

from edgeshare.contract.errors import NotFound
from edgeshare.kube.kube import Kube
from edgeshare.kube.messages import Conflicting, no_node
from labeller.names import FIELD_MANAGER
from labeller.output import Written
from labeller.ownership import node_labels, plan

TRIES = 3
"""A label that somebody else set between our look and our write is a conflict; then we look again."""


class NodeOutput:
    """The labels of one Node."""

    def __init__(self, kube: Kube, node_name: str) -> None:
        self._kube = kube
        self._node_name = node_name

    def write(self, labels: Mapping[str, str], complete: bool) -> Written:
        for _ in range(TRIES - 1):
            try:
                return self._write(labels, complete)
            except Conflicting:
                continue
        return self._write(labels, complete)

    def remove(self) -> Written:
        return self.write({}, complete=True)

    def _write(self, labels: Mapping[str, str], complete: bool) -> Written:
        found = self._kube.node(self._node_name)
        if found is None:
            raise NotFound(no_node(self._node_name))
        node = node_labels(found)
        planned = plan(node, labels, complete)
        if planned.labels != planned.before:
            # With its uid, no Node can be made by this, nor one labelled that took another's name.
            metadata = {"name": self._node_name, "uid": node.uid, "labels": dict(planned.labels)}
            body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
            self._kube.apply(f"/api/v1/nodes/{self._node_name}", FIELD_MANAGER, body, force=False)
        return Written(planned.before, planned.labels, tuple(map(str, planned.conflicts)))
