"""The assigner on the node, as its users install it, with a scheduler of its own and the cluster's status; and a
machine of more GPUs, and of EdgeTPUs."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from simgpu.machine import Machine
from simgpu.tpu import Tpus
from tests.kit.onenode.installed import cluster_status, edgetpus, release
from tests.kit.onenode.installed.metrics import samples
from tests.kit.onenode.installed.parts import Parts
from tests.kit.onenode.installed.release import GPUS, HOST_FOLDERS, NAME
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import WAIT
from tests.kit.processes.waiting import until

SCHEDULER = "edgeshare"
SERVICE = f"{NAME}-assigner"
HOST = f"{SERVICE}.{NAME}.svc"
SECRET = f"{SERVICE}-tls"
PORT = 9443
METRICS_PORT = 9466  # the chart's
PREFIX = "edgeshare_assigner_"
MACHINE = Path("/dev/shm/edgeshare-test-node-assigner")
HEALTH = HOST_FOLDERS[1] / "health"  # what the plugin remembers of devices
IN_NAMESPACE = f"--namespace={NAME}"
PODS = f"/api/v1/namespaces/{NAME}/pods?labelSelector=app.kubernetes.io/name%3D{SERVICE}"


class Assigner:
    """A context manager: while it is entered, pods that name the scheduler SCHEDULER go through the assigner, onto a
    machine of so many simulated GPUs and of the EdgeTPUs TPUS; afterwards the release is as it was."""

    def __init__(self, node: Node, gpus: int) -> None:
        self.machine = MACHINE
        self.tpus = Tpus(MACHINE / "tpus")
        self._node = node
        self._gpus = gpus
        self._stack = ExitStack()

    @property
    def model(self) -> str:
        """Of the GPUs, as labels spell it."""
        (model,) = {gpu.name for gpu in Machine(self.machine).gpus()}
        return model.replace(" ", "-")

    def __enter__(self) -> Self:
        with self._stack:
            authority, certificate, key = self._node.issue("assigner", HOST)
            files = {"tls.crt": certificate, "tls.key": key, "ca.crt": authority}
            words = (f"--from-file={name}={path}" for name, path in files.items())
            self._node.kubectl("create", IN_NAMESPACE, "secret", "generic", SECRET, *words)
            self._stack.callback(self._node.kubectl, "delete", IN_NAMESPACE, "secret", SECRET)
            self._stack.enter_context(cluster_status.certificates(self._node))
            self._stack.enter_context(edgetpus.device_files())
            self._stack.callback(self._install, release.MACHINE, GPUS)
            enabled = {"assigner": {"enabled": True, "tls": {"secretName": SECRET}}, **cluster_status.VALUES}
            self._install(MACHINE, self._gpus, tuple(edgetpus.TPUS), enabled)
            self._node.kubectl("rollout", "status", IN_NAMESPACE, f"deployment/{SERVICE}", WAIT)
            address = self._node.kubectl(
                "get", IN_NAMESPACE, f"service/{SERVICE}", "--output=jsonpath={.spec.clusterIP}"
            )
            self._stack.enter_context(self._node.second_scheduler(SCHEDULER, f"{address}:{PORT}", HOST))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def figure(self, name: str) -> float:
        """A metric of the replica that leads."""
        return self._leader()[1][name]

    def kill_leader(self) -> None:
        """Kill it, and return when another process leads: at once, by a Lease that is nobody's. How one runs out is
        tested where it takes seconds (tests/assigner)."""
        before, _ = self._leader()
        self._node.kill_container(before)
        nobodys = '--patch={"spec": {"holderIdentity": ""}}'
        self._node.kubectl("patch", IN_NAMESPACE, f"lease/{SERVICE}", "--type=merge", nobodys)
        until(lambda: (leader := self._leads()) is not None and leader[0] != before, "another one leads")

    def _install(
        self, machine: Path, gpus: int, tpus: Sequence[str] = (), more: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        """On a machine of so many GPUs and these EdgeTPUs; the other one's, which the plugin would go on to tell of as
        lost, are forgotten while no plugin runs."""
        with Parts(self._node).away():
            release.upgrade(self._node, machine=machine, gpus=gpus, tpus=tpus, more=more)
            shutil.rmtree(HEALTH)
        release.until_ready(self._node, gpus)
        count = f"--for=jsonpath={{.status.deviceCount}}={gpus + len(tpus)}"
        self._node.kubectl("wait", count, f"acceleratornode/{NODE_NAME}", WAIT)

    def _leader(self) -> tuple[str, dict[str, float]]:
        found: list[tuple[str, dict[str, float]]] = []

        def one_leads() -> bool:
            leader = self._leads()
            found.extend([leader] if leader is not None else [])
            return bool(found)

        until(one_leads, "one leads")
        return found[0]

    def _leads(self) -> tuple[str, dict[str, float]] | None:
        """The container that leads, and its metrics."""
        pods = self._node.told(PODS)["items"]
        for status in (pod["status"] for pod in pods):
            for container in status.get("containerStatuses", ()):
                figures = _figures(status.get("podIP", ""))
                if figures.get("leading"):
                    return container.get("containerID", ""), figures
        return None


def _figures(address: str) -> dict[str, float]:
    """None where it does not answer."""
    unlabelled = (sample for sample in samples(address, METRICS_PORT) if not sample.labels)
    return {sample.name.removeprefix(PREFIX): sample.value for sample in unlabelled}
