"""What the environment says of the cluster that a process is in, and of the node that it is on."""

from collections.abc import Mapping

from edgeshare.contract.errors import InvalidRequest


def in_pod(environment: Mapping[str, str]) -> bool:
    """Whether this is a pod: the kubelet tells each where the API server is."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST"))


def node_name(configured: str, environment: Mapping[str, str]) -> str:
    """This node's, as the configuration has it, or else the environment; empty where neither does."""
    return configured or environment.get("NODE_NAME", "")


def known_node_name(configured: str, environment: Mapping[str, str]) -> str:
    """This node's, as node_name finds it. Raises InvalidRequest where nobody says."""
    name = node_name(configured, environment)
    if not name:
        raise InvalidRequest(
            "the node's name is not known: set NODE_NAME (field spec.nodeName), or node_name in --config"
        )
    return name
