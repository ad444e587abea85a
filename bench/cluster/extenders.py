"""The extenders that kube-scheduler is measured with."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.kit.apiserver.api_server import STOP_S, ApiServer, done, free_ports
from tests.kit.manynodes.cluster import Cluster
from tests.kit.onenode.control_plane import SCHEDULER
from tests.kit.onenode.scheduling import Extender
from tests.kit.processes.probe import answers

READY_S = 120
ASSIGNER = "assigner"


@dataclass(frozen=True)
class Kind:
    """Which extender, and how it is spoken to."""

    name: str
    choice: str
    loopback: bool


@contextmanager
def extending(on: Cluster, kind: Kind) -> Iterator[tuple[Extender, str]]:
    """The extender, ready, and the address of its metrics."""
    address, metrics = (f"127.0.0.1:{port}" for port in free_ports(2))
    authority, daemons = on.server.authority, on.server.daemons
    certificate, key = authority.issue(kind.name, "edgeshare", group="system:masters", hosts=("IP:127.0.0.1",))
    reached = on.extender_at(address)
    if kind.loopback:
        reached = replace(reached, trust=None)
    if kind.name == ASSIGNER:
        config: dict[str, Any] = {
            "address": address,
            "metrics_address": metrics,
            "choice": kind.choice,
            "kubeconfig": str(service_account(on.server)),
        }
        if not kind.loopback:
            config["tls"] = {
                "certificate": str(certificate),
                "private_key": str(key),
                "client_authority": str(authority.certificate),
                "clients": [SCHEDULER],
            }
        file = on.server.kubeconfig.with_name("assigner.yaml")
        file.write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "edgeshare.cli", "sharemgr", "cluster", f"--config={file}"]
        ready = partial(answers, f"http://{metrics}/readyz")
    else:
        command = [sys.executable, "-m", "bench.cluster.thin_extender", f"--address={address}"]
        command += [f"--certificate={certificate}", f"--key={key}", f"--authority={authority.certificate}"]
        command += [f"--server={on.server.url}"]
        command += ["--plain"] * kind.loopback + ["--one"] * (kind.choice == "filter")
        ready = partial(listens, address)
    daemons.start(kind.name, command)
    try:
        daemons.wait_until(kind.name, ready, READY_S)
        yield reached, metrics
    finally:
        daemons.stop(kind.name, STOP_S)


def service_account(server: ApiServer) -> Path:
    """A kubeconfig with a service account's token, by which the assigner is known in a cluster."""
    file = server.kubeconfig.with_name("service-account.kubeconfig")
    if not file.exists():
        done(server.kubectl("create", "serviceaccount", ASSIGNER))
        administrator = f"--clusterrole=cluster-admin --serviceaccount=default:{ASSIGNER}".split()
        done(server.kubectl("create", "clusterrolebinding", ASSIGNER, *administrator))
        token = done(server.kubectl("create", "token", ASSIGNER, "--duration=24h")).stdout.strip()
        config = yaml.safe_load(server.kubeconfig.read_text())
        (user,) = config["users"]
        user["user"] = {"token": token}
        file.write_text(yaml.safe_dump(config))
    return file


def listens(address: str) -> bool:
    """Whether somebody accepts connections there."""
    host, _, port = address.rpartition(":")
    with socket.socket() as tried:
        return tried.connect_ex((host, int(port))) == 0
