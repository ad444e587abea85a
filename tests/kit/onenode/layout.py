"""Where everything of the node lies, and at which addresses it listens."""

from dataclasses import dataclass
from pathlib import Path

from tests.kit.programs.cache import cache_dir, scratch_dir

NODE_NAME = "edgeshare-test"

KUBELET_HEALTH = "http://127.0.0.1:10248/healthz"  # the kubelet's default

POD_SUBNET = "10.244.0.0/24"
SERVICE_SUBNET = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"  # the first of the service subnet is the API server's

SANDBOX_IMAGE = "localhost/edgeshare-test-pause:1"

# The kubelet's default. Its plugin folder is always below this one, so one machine carries one such node.
KUBELET_ROOT = Path("/var/lib/kubelet")
PLUGIN_SOCKET = KUBELET_ROOT / "device-plugins/kubelet.sock"
# Says which state folder the node that uses KUBELET_ROOT belongs to.
OWNER = KUBELET_ROOT / "edgeshare-test-node"
# Sockets' paths have to be short (108 bytes, unix(7)), whatever the cache folder's is.
RUN = Path("/run/edgeshare-test-node")
CONTAINERD_SOCKET = RUN / "containerd.sock"


@dataclass(frozen=True)
class Ports:
    """Of the control plane, on loopback; not those that distributions' own etcd and other API servers use."""

    api: int = 16443
    etcd: int = 12379
    etcd_peer: int = 12380
    etcd_metrics: int = 12381


@dataclass(frozen=True)
class Layout:
    """The folder that holds the node's state from `up` to `down`, and the ports that it listens at."""

    state: Path
    ports: Ports = Ports()

    @property
    def api_server(self) -> str:
        """The API server's URL."""
        return f"https://127.0.0.1:{self.ports.api}"

    @property
    def scratch(self) -> Path:
        """What etcd and containerd keep, which a machine that starts anew may have lost. Its name has the port, of
        which a machine has one."""
        return scratch_dir() / f"edgeshare-test-node-{self.ports.api}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.state / "kubeconfig"

    @property
    def config(self) -> Path:
        """The daemons' own configuration."""
        return self.state / "config"

    @property
    def owned(self) -> Path:
        """The list of folders elsewhere on the machine that go when the node goes."""
        return self.state / "owned"

    @property
    def logs(self) -> Path:
        """What the daemons wrote; it outlives the node."""
        return self.state / "logs"

    @property
    def pod_logs(self) -> Path:
        """What containers wrote."""
        return self.state / "pod-logs"

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.state / "pki"


def default_layout() -> Layout:
    """The layout in the cache folder."""
    return Layout(cache_dir() / "node")
