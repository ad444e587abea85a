"""The cluster's status on the node, installed and asked as its users do it."""

import base64
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sharemgr.cluster.issuing.kube_secrets import SUFFIXES
from tests.kit.onenode.installed.release import NAME
from tests.kit.onenode.node import Node
from tests.kit.processes.command import run

SECRETS = f"{NAME}-status-tls"  # how the names of its Secrets begin
VALUES = MappingProxyType({"clusterStatus": {"enabled": True, "secretName": SECRETS}})
PORT = 9467  # the chart's
IN_NAMESPACE = f"--namespace={NAME}"
EDGESHARE = (sys.executable, "-m", "edgeshare.cli")


@contextmanager
def certificates(node: Node) -> Iterator[None]:
    """The Secrets are there for which its pods wait."""
    words = ("--apply", "--status", f"--secret={SECRETS}", f"--kubeconfig={node.layout.kubeconfig}")
    run([*EDGESHARE, "sharemgr", "certificates", *words])
    try:
        yield
    finally:
        node.kubectl("delete", IN_NAMESPACE, "secret", *(f"{SECRETS}{suffix}" for suffix in SUFFIXES.values()))


class ClusterStatus:
    """Where it is asked."""

    def __init__(self, node: Node, folder: Path) -> None:
        """``folder`` is for what somebody has who asks: the authority's certificate, and a kubeconfig."""
        self._node = node
        self._authority, self._kubeconfig = folder / "ca.crt", folder / "kubeconfig"
        told = node.kubectl("get", IN_NAMESPACE, f"secret/{SECRETS}-status", r"--output=jsonpath={.data.ca\.crt}")
        self._authority.write_bytes(base64.b64decode(told))
        service = ("get", IN_NAMESPACE, f"service/{NAME}-status", "--output=jsonpath={.spec.clusterIP}")
        self._address = f"{node.kubectl(*service)}:{PORT}"

    def told(self, namespace: str, account: str) -> dict[str, Any]:
        """What `edgeshare status` tells a service account. Raises NodeError, with what it says, where it is refused."""
        token = self._node.kubectl("create", f"--namespace={namespace}", "token", account).strip()
        settings = json.loads(self._node.layout.kubeconfig.read_text())
        settings["users"][0]["user"] = {"token": token}
        self._kubeconfig.write_text(json.dumps(settings))
        asked = (f"--cluster-status={self._address}", f"--cluster-status-ca={self._authority}")
        told: dict[str, Any] = json.loads(
            run([*EDGESHARE, "status", "--cluster", f"--kubeconfig={self._kubeconfig}", *asked, "--json"])
        )
        return told
