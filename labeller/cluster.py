"""This node's cluster: where labels are written, and where they may have been written before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgeshare.contract.errors import EdgeshareError, InvalidRequest, NotFound, Unavailable
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
        """Takes every label of ours from all nodes; yields each with the labels that were taken from it. Raises
        Unavailable at the end, with the reason of each node that has them still."""
        left = []
        nodes, _ = self.kube.objects("/api/v1/nodes", "", lambda node: {"name": node["metadata"]["name"]})
        for name in (node["name"] for node in nodes):
            try:
                yield name, self.remove(name)
            except NotFound:
                # It has left the cluster meanwhile.
                continue
            except EdgeshareError as error:
                left.append(f"{name}: {error}")
        if left:
            raise Unavailable(f"{len(left)} nodes have labels of ours still: {'; '.join(left)}")


def reach(config: Config, environment: Mapping[str, str]) -> Cluster:
    """The cluster that the configuration, or this pod's service account, leads to. Raises InvalidRequest where there is
    none, Unavailable where a credential cannot be used."""
    if config.kubeconfig is None and "KUBERNETES_SERVICE_HOST" not in environment:
        raise InvalidRequest(
            "there is no cluster to write labels to: set kubeconfig in --config, or see them with --dry-run"
        )
    return Cluster(Kube.reach(config.kubeconfig), config.namespace or environment.get("POD_NAMESPACE", ""))


def node_name(config: Config, environment: Mapping[str, str]) -> str:
    """This node's. Raises InvalidRequest where nobody says."""
    name = config.node_name or environment.get("NODE_NAME", "")
    if not name:
        raise InvalidRequest(
            "the node's name is not known: set NODE_NAME (field spec.nodeName), or node_name in --config"
        )
    return name
