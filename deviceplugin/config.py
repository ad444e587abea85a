"""What can be set on a node's device plugin, in its YAML file; units end the keys.

One file serves every node of a cluster: what its top level says holds for all, and the lines under ``configs`` that
bear the name of a node's label `edge/config` go before it there.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from deviceplugin.health.health_config import HealthConfig
from deviceplugin.injection_config import Injection
from edgeshare.config_file import MetricsAddress, NodeName
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.errors import NotFound
from edgeshare.contract.names import CONFIG_DEFAULT, CONFIG_LABEL, KUBELET_DIR
from edgeshare.inventory.config import InventoryConfig

LABEL_VALUE = r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
"""Kubernetes' rule for the value of a label that is not empty (apimachinery, util/validation)."""


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("has to be an absolute path: the container runtime reads the same folder")
    return path


class Pick(BaseModel):
    """Picks devices: those of which all is true that is given here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(min_length=1)] | None = None
    """As `edgeshare status` shows it: NVML's UUID for a GPU or MIG device; a GPU's is for all its MIG devices, too."""

    index: Annotated[int, Field(ge=0, strict=True)] | None = None

    model: Annotated[str, Field(min_length=1)] | None = None
    """The whole name; capitals do not count, and a hyphen is as good as a space."""

    kind: Accelerator | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Pick":
        if not self.model_fields_set:
            raise ValueError("name an id, an index, a model or a kind")
        return self

    def __str__(self) -> str:
        return ", ".join(f"{key}: {getattr(self, key)}" for key in sorted(self.model_fields_set))


class NodeConfig(BaseModel):
    """What may differ from node to node, and change while the plugin runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    include: tuple[Pick, ...] = ()
    """Only devices that one of these picks are shared; nothing here: all."""

    exclude: tuple[Pick, ...] = ()
    """Devices that one of these picks are not shared, whatever ``include`` says."""

    inventory: InventoryConfig = InventoryConfig()
    """Where devices are looked for."""

    injection: Injection = Injection()
    """How a container gets its devices and the hook."""

    rescan_s: Annotated[float, Field(ge=0.1, le=3600)] = 10
    """How often the GPUs and their health are looked at. Each look costs the driver about a millisecond a
    GPU."""

    compare_s: Annotated[float, Field(ge=0.1, le=3600)] = 10
    """How often the allocations are compared with what the kubelet and the manager have, without any other
    cause."""

    health: HealthConfig = HealthConfig()
    """When a device is not healthy, and when it is again."""

    advertise: Literal["all", "placeable"] = "all"
    """Which free units the kubelet is told of. ``placeable``: as many as one container can be given, for a scheduler
    that only adds them up. ``all``: all, where the assigner, or whoever else, places pods by device."""


class Config(NodeConfig):
    """The plugin's configuration. Every key has a default that suits most nodes; unknown keys are refused."""

    configs: dict[Annotated[str, Field(pattern=LABEL_VALUE)], NodeConfig] = {}
    """By name: the keys that differ on the nodes whose label `edge/config` has it. One named `default` is for nodes
    without that label."""

    node_name: NodeName = ""
    """The node's name in the cluster; empty: the environment's NODE_NAME."""

    kubelet_dir: Path = Path(KUBELET_DIR)
    """Where the kubelet keeps its folder ``device-plugins``, whatever its root folder is."""

    pod_resources_socket: Path | None = None
    """Default: ``pod-resources/kubelet.sock`` in ``kubelet_dir``. To be set for a kubelet with another root
    folder."""

    node_dev: Path = Path("/dev")
    """Where the node's ``/dev`` is seen, to notice that a GPU's file is gone: a container's own does not follow it. The
    chart mounts and sets it."""

    kubeconfig: Path | None = None
    """How the API server is reached. Default: the service account, where there is one, and none otherwise."""

    metrics_address: MetricsAddress = ""
    """``host:port`` (``:port``: every address of this machine) where ``/metrics`` (Prometheus), ``/healthz`` and
    ``/readyz`` are served over HTTP, to whoever can reach it; empty: nowhere. The chart sets it."""

    cdi_dir: Annotated[Path, AfterValidator(_absolute)] = Path("/var/run/cdi")
    """Where the CDI specs are written. Runtimes look here and in /etc/cdi; this is the one for what programs write."""

    def for_node(self, name: str) -> NodeConfig:
        """What holds on a node whose label has this name; raises NotFound where no config bears it."""
        named = self.configs.get(name)
        if named is None and name != CONFIG_DEFAULT:
            there = ", ".join(sorted({CONFIG_DEFAULT, *self.configs}))
            raise NotFound(f"label {CONFIG_LABEL}: no config is named '{name}': there are {there}")
        own = {key: getattr(named, key) for key in named.model_fields_set} if named is not None else {}
        return NodeConfig(**{key: own.get(key, getattr(self, key)) for key in NodeConfig.model_fields})

    def fixed(self) -> dict[str, object]:
        """The keys that are read once, when the plugin starts."""
        return {
            key: getattr(self, key) for key in Config.model_fields if key not in (*NodeConfig.model_fields, "configs")
        }
