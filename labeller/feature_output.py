"""A NodeFeature object, of which node-feature-discovery (NFD) makes labels of the node.

What NFD does with the labels in it (kubernetes-sigs/node-feature-discovery, pkg/nfd-master/nfd-master.go; its reference
of nfd-master's configuration and of feature gates, v0.14 to v0.20):

- Names with a prefix become labels as they are, but for those of ``kubernetes.io`` and what ends with it, which it
  refuses unless ``extraLabelNs`` lists it, and those that ``denyLabelNs`` lists. Ours need neither.
- To names without one it adds ``feature.node.kubernetes.io/``, or, with the gate DisableAutoPrefix, it drops them. We
  write that prefix ourselves, so that either way the label is the same.
- It reads the objects of every namespace (unless ``restrictions.nodeFeatureNamespaceSelector`` says otherwise), and
  tells by their label ``nfd.node.kubernetes.io/node-name`` which node each is about.
"""

from collections.abc import Mapping
from typing import Any

from edgeshare.contract.errors import InvalidRequest, NotFound, Unavailable
from edgeshare.contract.labels import LENGTH_MAX
from edgeshare.kube.kube import Kube
from edgeshare.kube.messages import no_node
from labeller.names import FEATURE_PREFIX, FIELD_MANAGER, NFD_NODE_NAME
from labeller.output import Written
from labeller.ownership import node_labels

VERSION = "nfd.k8s-sigs.io/v1alpha1"


class FeatureOutput:
    """The NodeFeature object of one node."""

    def __init__(self, kube: Kube, node_name: str, namespace: str) -> None:
        self._kube = kube
        self._node_name = node_name
        self._name = f"edgeshare-{node_name}"
        self._namespace = namespace
        self._path = f"/apis/{VERSION}/namespaces/{namespace}/nodefeatures/{self._name}"

    def write(self, labels: Mapping[str, str], complete: bool) -> Written:
        """Raises InvalidRequest, too, where NFD cannot be told of that node."""
        if len(self._node_name) > LENGTH_MAX:
            raise InvalidRequest(
                f"output nodefeature: node {self._node_name} has a name of more than {LENGTH_MAX} characters, and "
                "node-feature-discovery knows a node by the value of a label: choose output node"
            )
        before = self._labels()
        named = {label if "/" in label else f"{FEATURE_PREFIX}{label}": value for label, value in labels.items()}
        after = named if complete else {**named, **before}
        # Also where nothing changed: it may be there no more, or somebody else may have edited it.
        if after:
            try:
                self._kube.apply(self._path, FIELD_MANAGER, self._feature(after))
            except Unavailable as error:
                raise Unavailable(
                    f"{error} (output nodefeature needs node-feature-discovery in the cluster)"
                ) from error
        elif before:
            self._kube.delete(self._path)
        return Written(before, after)

    def remove(self) -> Written:
        return self.write({}, complete=True)

    def _labels(self) -> dict[str, str]:
        spec = (self._kube.object_at(self._path) or {}).get("spec")
        labels = spec.get("labels") if isinstance(spec, dict) else None
        if not isinstance(labels or {}, dict):
            raise Unavailable(f"NodeFeature {self._namespace}/{self._name}: spec.labels is no object: delete it")
        return {str(label): str(value) for label, value in (labels or {}).items()}

    def _feature(self, labels: Mapping[str, str]) -> dict[str, Any]:
        node = self._kube.node(self._node_name)
        if node is None:
            raise NotFound(no_node(self._node_name))
        metadata = {
            "name": self._name,
            "namespace": self._namespace,
            "labels": {NFD_NODE_NAME: self._node_name, "app.kubernetes.io/managed-by": FIELD_MANAGER},
            # With its pod it would go at each update, and the labels with it; with its node it is to go.
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": self._node_name, "uid": node_labels(node).uid}
            ],
        }
        return {"apiVersion": VERSION, "kind": "NodeFeature", "metadata": metadata, "spec": {"labels": dict(labels)}}
