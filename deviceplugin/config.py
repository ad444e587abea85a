"""What can be set on a node's device plugin, in its YAML file; units end the keys."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The plugin's configuration. Every key has a default that suits most nodes; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    node_name: Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9.-]*$")] = ""
    """The node's name in the cluster; empty: the environment's NODE_NAME."""

    kubelet_dir: Path = Path("/var/lib/kubelet")
    """Where the kubelet keeps its folder ``device-plugins``, whatever its root folder is."""

    pod_resources_socket: Path | None = None
    """Default: ``pod-resources/kubelet.sock`` in ``kubelet_dir``. To be set for a kubelet with another root
    folder."""

    kubeconfig: Path | None = None
    """How the API server is reached. Default: the service account, where there is one, and none otherwise."""

    rescan_s: Annotated[float, Field(ge=0.1, le=3600)] = 5
    """How often the GPUs and their health are looked at. Each look costs the driver about a millisecond a
    GPU."""

    compare_s: Annotated[float, Field(ge=0.1, le=3600)] = 10
    """How often the allocations are compared with what the kubelet and the manager have, without any other
    cause."""
