"""How kube-scheduler is told of itself and of the extender that it asks."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeshare.contract.accelerator_kind import RESOURCES

CALLS_PER_S = 5000
"""kube-scheduler's own default is 50 calls a second, which would be all that is measured of a scheduler that binds by
itself; an extender that binds is not held to it."""

HURRIED_BACK_OFF_S = 1
"""How long what could not be placed waits at most before it is tried again: the shortest that there is. By default it
is up to 10 s, which is all that a test would wait for."""

WEIGHT = 10
"""An extender's scores are 0 to 10, of which each counts as 10 of the 100 that one of kube-scheduler's own plugins
gives at most, times this. So a step between two ranks is 100: more than the plugins that spread processor time and RAM
make of two nodes, half of what a preference counts that the pod itself states (node affinity)."""


@dataclass(frozen=True)
class Trust:
    """By which certificates kube-scheduler and an extender know each other."""

    authority: Path
    certificate: Path
    """kube-scheduler's own."""
    key: Path
    server_name: str = ""
    """What the extender's certificate is for, where that is not its address."""


@dataclass(frozen=True)
class Extender:
    """Where kube-scheduler finds one."""

    address: str
    """host:port"""
    trust: Trust | None
    """None: plain HTTP."""

    def described(self) -> dict[str, Any]:
        """As a KubeSchedulerConfiguration has it."""
        described: dict[str, Any] = {
            "urlPrefix": f"{'https' if self.trust else 'http'}://{self.address}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "bindVerb": "bind",
            "preemptVerb": "preempt",
            "weight": WEIGHT,
            "httpTimeout": "5s",
            # Nodes are told by name alone.
            "nodeCacheCapable": True,
            # kube-scheduler goes on checking the sum: what does not fit by it never comes here.
            "managedResources": [{"name": resource, "ignoredByScheduler": False} for resource in RESOURCES],
        }
        if self.trust is not None:
            described["enableHTTPS"] = True
            described["tlsConfig"] = {
                "caFile": str(self.trust.authority),
                "certFile": str(self.trust.certificate),
                "keyFile": str(self.trust.key),
                "serverName": self.trust.server_name,
            }
        return described


def configuration(
    kubeconfig: Path, extender: Extender | None, name: str = "default-scheduler", *, hurried: bool = False
) -> str:
    """The text of a KubeSchedulerConfiguration (JSON, which is YAML) of the scheduler that pods call so; one that is
    hurried soon tries again what it could not place."""
    content: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": name}],
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": CALLS_PER_S, "burst": CALLS_PER_S},
    }
    if hurried:
        content |= {"podInitialBackoffSeconds": HURRIED_BACK_OFF_S, "podMaxBackoffSeconds": HURRIED_BACK_OFF_S}
    if extender is not None:
        content["extenders"] = [extender.described()]
    return json.dumps(content, indent=1)
