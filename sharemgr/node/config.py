"""What can be set on a node's share manager, in its YAML file; units end the keys. The defaults of what the rule of a
GPU's time has, too, are the rule's."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from edgeshare.config_file import Address, MetricsAddress, NodeName
from edgeshare.contract.units import NS_PER_MS, NS_PER_S, NS_PER_US
from edgeshare.inventory.config import InventoryConfig
from edgeshare.tls_files import TlsFiles
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.settings import Settings

TURNS = Settings()


class RemoteStatus(TlsFiles):
    """Where others than this node's own are told who has what, and who they have to be."""

    address: Address
    """``host:port`` (``:port``: every address of this machine), over TLS."""

    authority: Path
    """Who signed the certificates that clients have to show; PEM."""

    clients: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    """The common names that are let in."""


class Config(BaseModel):
    """The manager's configuration. Every key has a default that suits most nodes; unknown keys are
    refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    slice_ms: Annotated[float, Field(ge=0.5, le=100)] = TURNS.slice_ns // NS_PER_MS
    """Length of a slice while others wait. Shorter: others wait less, more of the device goes into
    hand-overs (at 2 ms simulation keeps 99.0 % of the throughput, at 5 ms 99.6 %)."""

    window_s: Annotated[float, Field(ge=1, le=60)] = TURNS.window_ns // NS_PER_S
    """What the reported shares are measured over. The bound on a share's error shrinks with it."""

    queue_cap_us: Annotated[int, Field(ge=50, le=100_000)] = TURNS.queue_cap_ns // NS_PER_US
    """GPU time that a client may keep queued beyond the end of its slice while others wait. A revoked client drains
    within this and one kernel; below it, short kernels of uneven length leave gaps."""

    anticipation_us: Annotated[int, Field(ge=0, le=10_000)] = TURNS.anticipation_ns // NS_PER_US
    """How long a drained client keeps its turn if it always comes back that soon. Longer: loops that wait
    for each result get their share with more work between two launches, at the price of a device that
    idles meanwhile."""

    kappa: Annotated[float, Field(ge=1, le=99)] = Rule().kappa
    """How much of a GPU may be kept for a program that leaves gaps, as a multiple of what it uses alone: 1 keeps the
    GPU as busy as can be, 99 gives each its request as far as can be (docs/begin/sharing.md)."""

    failure_policy: Literal["open", "closed"] = "open"
    """What a client does when the manager stays away: ``open`` runs on unshared, ``closed`` launches
    nothing more."""

    grace_s: Annotated[float, Field(ge=0, le=3600)] = 5
    """How long a client waits for a manager that went away before the failure policy says what it does.
    An update of the manager takes less."""

    default_limit: Literal["lend", "request"] = "lend"
    """Limit of an allocation that names none: ``lend`` gives it idle time up to the whole device,
    ``request`` never more than its request."""

    managed_memory: Literal["count", "ignore"] = "count"
    """Whether managed memory counts under an allocation's cap: it can be moved out to the host, so that it need not all
    be on the device, but the driver's figures count it there."""

    max_clients: Annotated[int, Field(ge=1, le=4096)] = 64
    """Processes of one allocation that may be joined at a time, each of which costs the manager two pages and four
    descriptors; the next one waits until one has gone."""

    max_records_per_s: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    """Records of one allocation's clients that are read in a second. Who sends more is read no faster: it slows
    itself down, and the manager spends at most about a fifth of a core on it."""

    metrics_address: MetricsAddress = ""
    """``host:port`` (``:port``: every address of this machine) where ``/metrics`` (Prometheus), ``/healthz`` and
    ``/readyz`` are served over HTTP, to whoever can reach it; empty: nowhere. The chart sets it."""

    remote_status: RemoteStatus | None = None
    """Where ``GetNodeStatus`` is answered over TCP, to clients of these names: the cluster part asks there. None:
    nowhere."""

    wait_for_driver: bool = False
    """What to do where there is no driver, or no GPU: wait until there is, or (false) end with a line that says so.
    The chart sets it: on a node without hardware a DaemonSet's container should rest, not crash again and again."""

    inventory: InventoryConfig = InventoryConfig()
    """Where devices are looked for; the device plugin needs the same."""

    tpu_slice_ms: Annotated[float, Field(ge=1, le=1000)] = 50
    """Length of a slice of an EdgeTPU while others wait. Longer than a GPU's, as to open one takes milliseconds; who
    has it open is not called back, so that this is how long one that closes and opens it again may keep its turn."""

    tpu_anticipation_us: Annotated[int, Field(ge=0, le=100_000)] = 5_000
    """As anticipation_us, for EdgeTPUs: how soon after the last close the next open comes."""

    sysfs: Annotated[Path, Field(strict=False)] = Path("/sys")
    """Where the containers have sysfs: it tells which number a device on the USB has now."""

    node_name: NodeName = ""
    """The node's name in the cluster; empty: the environment's NODE_NAME. Where there is one, an unmanaged process
    becomes an event of its pod."""

    kubeconfig: Annotated[Path | None, Field(strict=False)] = None
    """How the API server is reached for that. Default: the service account."""

    @property
    def slice_ns(self) -> int:
        return round(self.slice_ms * NS_PER_MS)

    @property
    def window_ns(self) -> int:
        return round(self.window_s * NS_PER_S)

    @property
    def queue_cap_ns(self) -> int:
        return self.queue_cap_us * NS_PER_US

    @property
    def anticipation_ns(self) -> int:
        return self.anticipation_us * NS_PER_US

    @property
    def tpu_slice_ns(self) -> int:
        return round(self.tpu_slice_ms * NS_PER_MS)

    @property
    def tpu_anticipation_ns(self) -> int:
        return self.tpu_anticipation_us * NS_PER_US

    @property
    def grace_ms(self) -> int:
        return round(self.grace_s * 1_000)
