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


Done = subprocess.CompletedProcess[str]
"""What became of a kubectl."""


@dataclass(frozen=True)
class ApiServer:
    """One that answers."""

    url: str
    kubeconfig: Path
    """The administrator's."""
    plane: ControlPlane
    authority: Authority
    daemons: Daemons
    """For what is to run beside it; whoever starts one ends it."""

    def kubectl(self, *words: str, stdin: str = "") -> Done:
        """Run kubectl as the administrator, whatever comes of it."""
        return subprocess.run(
            [program(KUBERNETES, "kubectl"), f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )


def done(process: Done) -> Done:
    """The same, if it succeeded."""
    assert process.returncode == 0, process.stderr
    return process


def refused(process: Done, said: str) -> None:
    """Holds it to having been refused, and to having been told this."""
    assert process.returncode != 0
    assert said in process.stderr, process.stderr


@contextmanager
def api_server(state: Path, *options: str) -> Iterator[ApiServer]:
    """An API server with these options, whose state is in `state`, beside any other on this machine. Raises
    NodeError."""
    install(missing({name: NODE_PACKAGES[name] for name in ("etcd", "openssl")}))
    layout = Layout(state, Ports(*free_ports(4)))
    layout.config.mkdir(parents=True, exist_ok=True, mode=0o700)
    daemons, authority = Daemons(layout.state), Authority(layout.pki)
    plane = ControlPlane(layout, authority)
    with ExitStack() as stack:
        stack.callback(daemons.stop, "etcd", STOP_S)
        daemons.start("etcd", plane.etcd())
        daemons.wait_until("etcd", plane.etcd_ready, READY_S)
        stack.callback(daemons.stop, "api-server", STOP_S)
        daemons.start("api-server", [*plane.api_server(), *options])
        daemons.wait_until("api-server", plane.api_server_ready, READY_S)
        yield ApiServer(layout.api_server, plane.administrator(), plane, authority, daemons)


def free_ports(count: int) -> list[int]:
    """So many that nobody listens at."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
