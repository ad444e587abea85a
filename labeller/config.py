"""What can be set on the labeller, in its YAML file; units end the keys."""

from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from edgeshare.config_file import MetricsAddress, NodeName
from edgeshare.contract.units import MEMORY_MIB_MAX
from edgeshare.inventory.boards import RESERVE_MIB
from labeller.labels import Switches

Source = Literal["nvml", "jetson", "devicetree", "coral", "buses"]


def _absolute(path: PurePosixPath) -> PurePosixPath:
    if not path.is_absolute():
        raise ValueError("has to be an absolute path: it is looked for below the root")
    # Two slashes are a root of their own there (POSIX.1, 4.13).
    return PurePosixPath("/", *path.parts[1:])


class UsageConfig(BaseModel):
    """The settings of watching. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    interval_s: Annotated[float, Field(ge=0.5, le=3600)] = 5
    """How often the accelerators are looked at. A reading of three times that age is shown no more."""

    tegrastats: Annotated[PurePosixPath, AfterValidator(_absolute)] = PurePosixPath("/usr/bin/tegrastats")
    """Where Jetson Linux has that program, as the node sees it. Before R28 it lay in the home folder, where others may
    write: this is run with the labeller's rights."""


class Config(BaseModel):
    """The labeller's configuration. Every key has a default that suits most nodes; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: tuple[Source, ...] = ("nvml", "jetson", "devicetree", "coral", "buses")
    """What is asked. Each finds nothing, and says nothing, on a machine without its hardware."""

    root: Path = Path("/")
    """Where the node's ``/dev``, ``/etc``, ``/proc`` and ``/sys`` are seen."""

    devicetree_nodes: tuple[Annotated[str, Field(min_length=1, max_length=255)], ...] = ("cpu", "gpu")
    """Nodes of the devicetree that are labelled besides its root, wherever they are in it: their names; without a unit
    address for those with any (`gpu` for `gpu@57000000`)."""

    reactor_names: bool = True
    """Writes reActor's labels: ``gpu.model`` and the others."""

    devicetree_names: bool = True
    """Writes those of k8s-dt-node-labeller: ``beta.devicetree.org/…``."""

    legacy_l4t: bool = False
    """Says of a Jetson's driver what reActor does: ``4.3`` where Jetson Linux 32.4.3 is."""

    jetson_reserve_mib: Annotated[int, Field(ge=0, le=MEMORY_MIB_MAX)] = RESERVE_MIB
    """What of a Jetson's memory is not shared: as ``inventory.jetson_reserve_mib`` in the device plugin's
    configuration."""

    output: Literal["node", "nodefeature"] = "node"
    """Where the labels are written: to the Node, or to a NodeFeature object, of which node-feature-discovery makes
    labels."""

    interval_s: Annotated[float, Field(ge=1, le=86_400)] | None = None
    """How often the machine is looked at anew, besides when a device comes or goes. Default: the labels are written
    once, and that is all."""

    write_interval_s: Annotated[float, Field(ge=1, le=86_400)] = 60
    """How often what was found is written again between two looks, which where nothing changed is one read: a Node that
    was made anew has lost its labels. Longer where thousands of nodes share an API server that is slow."""

    node_name: NodeName = ""
    """The node's name in the cluster; empty: the environment's NODE_NAME."""

    namespace: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9-]*$")] = ""
    """Where the NodeFeature object lies; empty: the environment's POD_NAMESPACE."""

    kubeconfig: Path | None = None
    """How the API server is reached. Default: the service account."""

    metrics_address: MetricsAddress = ""
    """``host:port`` (``:port``: every address of this machine) where ``--watch-usage`` serves ``/metrics``
    (Prometheus), ``/healthz`` and ``/readyz`` over HTTP, to whoever can reach it; empty: 127.0.0.1:9417."""

    usage: UsageConfig = UsageConfig()
    """How ``--watch-usage`` watches."""

    def fixed(self) -> dict[str, object]:
        """The keys that are read once, when the labeller starts."""
        keys = ("output", "interval_s", "node_name", "namespace", "kubeconfig", "metrics_address", "usage")
        return {key: getattr(self, key) for key in keys}

    def switches(self) -> Switches:
        """What the derivations have to know of it."""
        return Switches(self.reactor_names, self.devicetree_names, self.legacy_l4t, self.jetson_reserve_mib)
