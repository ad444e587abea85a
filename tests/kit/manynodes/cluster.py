"""The control plane of many nodes, and KWOK, which plays their kubelets."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.kit.apiserver.api_server import STOP_S, ApiServer, api_server
from tests.kit.manynodes.stages import stages
from tests.kit.onenode.scheduling import Extender
from tests.kit.programs.binaries import KWOK, program

CRDS = Path(__file__).parents[3] / "deploy/chart/crds"
SCHEDULER = "scheduler"

HEARTBEAT_S = 1200
"""Seconds that a node's lease lasts; a quarter of it passes between two heartbeats. With the kubelet's own, 40 s, 5,000
nodes would write 500 times a second, which is a processor's whole work."""

OPTIONS = (
    # It taints new nodes until the controller manager has seen them ready, and there is none.
    "--disable-admission-plugins=TaintNodesByCondition,ServiceAccount",
    # Between two runs all pods are deleted at once.
    "--delete-collection-workers=8",
)


class Cluster:
    """One that runs, its scheduler apart: that is started and stopped as a measurement needs it."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    def start_scheduler(self, extender: Extender | None) -> None:
        """Start kube-scheduler, and return at once."""
        # It serves nothing: another one on this machine has its port.
        self.server.daemons.start(SCHEDULER, [*self.server.plane.scheduler(extender), "--secure-port=0"])

    def stop_scheduler(self) -> None:
        """End kube-scheduler."""
        self.server.daemons.stop(SCHEDULER, STOP_S)

    def extender_at(self, address: str) -> Extender:
        """An extender that serves with a certificate of this cluster's authority, at `host:port`."""
        return self.server.plane.extender_at(address)


@contextmanager
def cluster(state: Path) -> Iterator[Cluster]:
    """A cluster without nodes, whose state is in `state`, beside any other on this machine. Raises NodeError."""
    kwok = program(KWOK, "kwok")
    with api_server(state, *OPTIONS) as server, ExitStack() as stack:
        server.define(CRDS)
        config = state / "config/kwok.yaml"
        config.write_text(stages())
        stack.callback(server.daemons.stop, "kwok", STOP_S)
        server.daemons.start(
            "kwok",
            [
                kwok,
                f"--kubeconfig={server.kubeconfig}",
                f"--config={config}",
                "--manage-all-nodes",
                f"--node-lease-duration-seconds={HEARTBEAT_S}",
            ],
        )
        stack.callback(server.daemons.stop, SCHEDULER, STOP_S)
        yield Cluster(server)
