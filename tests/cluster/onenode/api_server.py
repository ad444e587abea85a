"""A real API server on an etcd of its own, with nothing behind it: no controllers, no scheduler, no node."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from onenode.binaries import KUBERNETES, program
from onenode.certificates import Authority
from onenode.control_plane import ControlPlane
from onenode.daemons import Daemons
from onenode.layout import Layout, Ports
from onenode.packages import NODE_PACKAGES, install, missing

READY_S = 120  # a safety limit for a loaded machine; a start takes about five seconds in all
STOP_S = 20


@dataclass(frozen=True)
class ApiServer:
    """One that answers."""

    kubeconfig: Path

    def kubectl(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator, whatever comes of it."""
        return subprocess.run(
            [program(KUBERNETES, "kubectl"), f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def api_server(state: Path) -> Iterator[ApiServer]:
    """An API server whose state is in `state`, beside any other on this machine. Raises NodeError."""
    install(missing({name: NODE_PACKAGES[name] for name in ("etcd", "openssl")}))
    layout = Layout(state, Ports(*_free_ports(4)))
    daemons, plane = Daemons(layout.state), ControlPlane(layout, Authority(layout.pki))
    with ExitStack() as stack:
        stack.callback(daemons.stop, "etcd", STOP_S)
        daemons.start("etcd", plane.etcd())
        daemons.wait_until("etcd", plane.etcd_ready, READY_S)
        stack.callback(daemons.stop, "api-server", STOP_S)
        daemons.start("api-server", plane.api_server())
        daemons.wait_until("api-server", plane.api_server_ready, READY_S)
        yield ApiServer(plane.administrator())


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
