"""containerd, the kubelet and kube-proxy: their command lines and configuration."""

import json
from pathlib import Path

from tests.kit.apiserver.certificates import Authority
from tests.kit.onenode import runtime
from tests.kit.onenode.layout import (
    CONTAINERD_SOCKET,
    KUBELET_ROOT,
    NODE_NAME,
    POD_SUBNET,
    Layout,
)
from tests.kit.programs.binaries import KUBERNETES, Module, program


class Worker:
    """The node's own processes."""

    def __init__(self, layout: Layout, authority: Authority) -> None:
        self._layout = layout
        self._authority = authority

    def containerd(self) -> list[str | Path]:
        """A containerd of our own: nothing of one that the machine may run is touched."""
        networks = self._layout.config / "cni"
        networks.mkdir(parents=True, exist_ok=True)
        self._json(
            networks / "10-node.conflist",
            {
                "cniVersion": "0.4.0",
                "name": "edgeshare-test",
                "plugins": [
                    {
                        "type": "ptp",
                        "ipam": {
                            "type": "host-local",
                            "dataDir": str(self._layout.state / "cni"),
                            "ranges": [[{"subnet": POD_SUBNET}]],
                            "routes": [{"dst": "0.0.0.0/0"}],
                        },
                    }
                ],
            },
        )
        return runtime.command(self._layout, networks)

    def kubelet(self, module: Module) -> list[str | Path]:
        """The kubelet that ``module`` builds, for either cgroup hierarchy and for machines with swap or little
        free disk."""
        # It accepts neither an empty nor a loopback resolver; what it names needs not answer.
        resolver = self._layout.config / "resolv.conf"
        resolver.write_text("nameserver 192.0.2.1\n")
        config = self._json(
            self._layout.config / "kubelet.json",
            {
                "apiVersion": "kubelet.config.k8s.io/v1beta1",
                "kind": "KubeletConfiguration",
                "authentication": {
                    "anonymous": {"enabled": False},
                    "webhook": {"enabled": True},
                    "x509": {"clientCAFile": str(self._authority.certificate)},
                },
                "authorization": {"mode": "Webhook"},
                "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
                # The default is 10 s, and twice as long each time, for a container that tests kill again and again.
                "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
                "featureGates": {"KubeletCrashLoopBackOffMax": True},  # on by default from 1.35
                "cgroupDriver": "cgroupfs",
                "failCgroupV1": False,
                "failSwapOn": False,
                "enforceNodeAllocatable": [],
                "evictionHard": {
                    "memory.available": "50Mi",
                    "nodefs.available": "1%",
                    "imagefs.available": "1%",
                },
                "imageGCHighThresholdPercent": 100,
                "makeIPTablesUtilChains": False,
                # The default of 10 s is how long a change of the node's resources takes to be seen.
                "nodeStatusUpdateFrequency": "1s",
                "podLogsDir": str(self._layout.pod_logs),
                "resolvConf": str(resolver),
            },
        )
        kubeconfig = self._layout.config / "kubelet.kubeconfig"
        self._authority.kubeconfig(
            kubeconfig, self._layout.api_server, f"system:node:{NODE_NAME}", group="system:nodes"
        )
        return [
            program(module, "kubelet"),
            f"--config={config}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={NODE_NAME}",
            f"--root-dir={KUBELET_ROOT}",
            f"--cert-dir={self._layout.pki / 'kubelet'}",
        ]

    def proxy(self) -> list[str | Path]:
        """kube-proxy: without it no pod reaches the API server at the address that its environment names."""
        kubeconfig = self._layout.config / "proxy.kubeconfig"
        self._authority.kubeconfig(kubeconfig, self._layout.api_server, "system:kube-proxy")
        config = self._json(
            self._layout.config / "proxy.json",
            {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration",
                "mode": "nftables",
                "clientConnection": {"kubeconfig": str(kubeconfig)},
                "hostnameOverride": NODE_NAME,
                "clusterCIDR": POD_SUBNET,
                "metricsBindAddress": "127.0.0.1:10249",
                "healthzBindAddress": "127.0.0.1:10256",
                # 0 leaves the machine's own setting.
                "conntrack": {
                    "maxPerCore": 0,
                    "min": 0,
                    "tcpEstablishedTimeout": "0s",
                    "tcpCloseWaitTimeout": "0s",
                },
            },
        )
        return [program(KUBERNETES, "kube-proxy"), f"--config={config}"]

    def _json(self, path: Path, content: object) -> Path:
        text = json.dumps(content, indent=1)
        # kube-proxy ends when its file is written anew, be it with the same text.
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        return path
