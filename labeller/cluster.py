"""This node's cluster: where labels are written, and where they may have been written before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgeshare.contract.errors import InvalidRequest
from edgeshare.kube.environment import in_pod
from edgeshare.kube.every_node import taken_from_every_node
from edgeshare.kube.kube import Kube
from labeller.config import Config
from labeller.feature_output import FeatureOutput
from labeller.node_output import NodeOutput
from labeller.output import Output


@dataclass(frozen=True)
class Cluster:
    """An API server, and the namespace of our NodeFeature objects; empty: there are none."""

    kube: Kube
    namespace: str

    def outputs(self, node: str, chosen: str) -> tuple[Output, list[Output]]:
        """The output that the configuration chooses, and those that it may have chosen before. Raises InvalidRequest
        where it cannot be written to."""
        nodes = NodeOutput(self.kube, node)
        features = FeatureOutput(self.kube, node, self.namespace)
        if chosen == "node":
            return nodes, [features] if self.namespace else []
        if not self.namespace:
            raise InvalidRequest(
                "output nodefeature: set the environment's POD_NAMESPACE (field metadata.namespace), or namespace in "
                "--config"
            )
        return features, [nodes]

    def remove(self, node: str) -> list[str]:
        """Takes every label of ours from a node, wherever it was written; their names. Raises EdgeshareError."""
        output, others = self.outputs(node, "node")
        return [label for each in (output, *others) for label in each.remove().before]

    def remove_everywhere(self) -> Iterator[tuple[str, list[str]]]:
        """Takes every label of ours from all nodes, as taken_from_every_node does."""
        return taken_from_every_node(self.kube, self.remove, "labels of ours")


def reach(config: Config, environment: Mapping[str, str]) -> Cluster:
    """The cluster that the configuration, or this pod's service account, leads to. Raises InvalidRequest where there is
    none, Unavailable where a credential cannot be used."""
    if config.kubeconfig is None and not in_pod(environment):
        raise InvalidRequest(
            "there is no cluster to write labels to: set kubeconfig in --config, or see them with --dry-run"
        )
    return Cluster(Kube.reach(config.kubeconfig), config.namespace or environment.get("POD_NAMESPACE", ""))
