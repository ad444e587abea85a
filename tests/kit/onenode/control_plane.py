"""etcd, the API server, the controller manager and the scheduler: their command lines and what these name."""

from pathlib import Path

from tests.kit.apiserver.certificates import Authority
from tests.kit.onenode.layout import (
    API_SERVICE_ADDRESS,
    POD_SUBNET,
    SERVICE_SUBNET,
    Layout,
)
from tests.kit.onenode.scheduling import Extender, Trust, configuration
from tests.kit.processes.probe import answers
from tests.kit.programs.binaries import KUBERNETES, program

SCHEDULER = "system:kube-scheduler"
"""Whom certificates name as kube-scheduler."""


class ControlPlane:
    """The control plane's processes, of one certificate authority and one state folder."""

    def __init__(self, layout: Layout, authority: Authority) -> None:
        self._layout = layout
        self._authority = authority

    def etcd(self) -> list[str | Path]:
        """etcd 3.4 and later, for this machine and holders of our certificates only."""
        certificate, key = self._authority.issue("etcd", "etcd", hosts=("IP:127.0.0.1",))
        ports = self._layout.ports
        url, peer = f"https://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
        return [
            "/usr/bin/etcd",
            f"--data-dir={self._layout.scratch / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            f"--listen-metrics-urls=http://127.0.0.1:{ports.etcd_metrics}",
            "--client-cert-auth",
            f"--trusted-ca-file={self._authority.certificate}",
            f"--cert-file={certificate}",
            f"--key-file={key}",
        ]

    def etcd_ready(self) -> bool:
        """Whether etcd has a leader."""
        return answers(f"http://127.0.0.1:{self._layout.ports.etcd_metrics}/health")

    def api_server(self) -> list[str | Path]:
        """The API server, with RBAC and the Node authorizer."""
        hosts = (f"IP:{API_SERVICE_ADDRESS}", "IP:127.0.0.1", "DNS:localhost", "DNS:kubernetes.default.svc")
        certificate, key = self._authority.issue("api-server", "kube-apiserver", hosts=hosts)
        to_etcd, to_etcd_key = self._authority.issue("api-server-etcd", "kube-apiserver")
        # system:masters is what lets it use the kubelet's API: logs, exec.
        to_kubelet, to_kubelet_key = self._authority.issue(
            "api-server-kubelet", "kube-apiserver", group="system:masters"
        )
        public, private = self._authority.signing_key("service-accounts")
        return [
            program(KUBERNETES, "kube-apiserver"),
            f"--secure-port={self._layout.ports.api}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self._authority.certificate}",
            f"--etcd-servers=https://127.0.0.1:{self._layout.ports.etcd}",
            f"--etcd-cafile={self._authority.certificate}",
            f"--etcd-certfile={to_etcd}",
            f"--etcd-keyfile={to_etcd_key}",
            f"--kubelet-client-certificate={to_kubelet}",
            f"--kubelet-client-key={to_kubelet_key}",
            # The node's name resolves nowhere.
            "--kubelet-preferred-address-types=InternalIP",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={private}",
            f"--service-cluster-ip-range={SERVICE_SUBNET}",
        ]

    def api_server_ready(self) -> bool:
        """Whether the API server says that all its parts are ready."""
        return answers(f"{self._layout.api_server}/readyz", self._authority.certificate)

    def controller_manager(self) -> list[str | Path]:
        """All controllers, each under a service account of its own."""
        _, private = self._authority.signing_key("service-accounts")
        kubeconfig = self._layout.config / "controller-manager.kubeconfig"
        self._authority.kubeconfig(kubeconfig, self._layout.api_server, "system:kube-controller-manager")
        return [
            program(KUBERNETES, "kube-controller-manager"),
            f"--kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={private}",
            f"--root-ca-file={self._authority.certificate}",
            "--allocate-node-cidrs=false",
            f"--cluster-cidr={POD_SUBNET}",
        ]

    def scheduler(self, extender: Extender | None = None) -> list[str | Path]:
        """The default scheduler, and the extender that it asks about pods with shares of GPUs."""
        kubeconfig, configured = (self._layout.config / f"scheduler.{ending}" for ending in ("kubeconfig", "json"))
        self._authority.kubeconfig(kubeconfig, self._layout.api_server, SCHEDULER)
        configured.write_text(configuration(kubeconfig, extender))
        return [program(KUBERNETES, "kube-scheduler"), f"--config={configured}", "--bind-address=127.0.0.1"]

    def second_scheduler(self, name: str, extender: Extender) -> list[str | Path]:
        """Another one, for the pods that name it, which soon tries again what it could not place."""
        kubeconfig, configured = (self._layout.config / f"{name}.{ending}" for ending in ("kubeconfig", "json"))
        self._authority.kubeconfig(kubeconfig, self._layout.api_server, SCHEDULER)
        configured.write_text(configuration(kubeconfig, extender, name, hurried=True))
        # It serves nothing: the first one has its port.
        return [program(KUBERNETES, "kube-scheduler"), f"--config={configured}", "--secure-port=0"]

    def extender_at(self, address: str, server_name: str = "") -> Extender:
        """An extender of the scheduler's at `host:port`, which has a certificate of the same authority."""
        certificate, key = self._authority.issue("scheduler-at-extender", SCHEDULER)
        return Extender(address, Trust(self._authority.certificate, certificate, key, server_name))

    def administrator(self) -> Path:
        """Write the kubeconfig of a user who may do everything."""
        return self._authority.kubeconfig(
            self._layout.kubeconfig, self._layout.api_server, "admin", group="system:masters"
        )
