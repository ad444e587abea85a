"""edgeshare's own containers on the node: ended, cut off, taken away, asked for their figures."""

import ctypes
import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from edgeshare.contract.names import GPU_PERCENT
from tests.kit.onenode.installed.metrics import samples
from tests.kit.onenode.installed.release import NAME
from tests.kit.onenode.layout import PLUGIN_SOCKET
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.given import allocatable
from tests.kit.onenode.pods.pods import WAIT
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import until

PLUGIN, MANAGER = "device-plugin", "share-manager"
METRICS_PORT = 9465  # the chart's
PREFIX = "edgeshare_deviceplugin_"
IN_NAMESPACE = f"--namespace={NAME}"
DAEMONSET = (IN_NAMESPACE, f"daemonset/{NAME}")
PODS = ("pods", IN_NAMESPACE, f"--selector=app.kubernetes.io/name={NAME}")
PATH = f"/api/v1/namespaces/{NAME}/pods?labelSelector=app.kubernetes.io/name%3D{NAME}"
NOWHERE = "edgeshare-test/nowhere"  # a label that no node has
PIDFD_GETFD = 438  # linux/include/uapi/asm-generic/unistd.h; of every architecture the same

Life = tuple[str, float]
"""Container of a plugin, and how often it has been registered."""


class Parts:
    """The containers of the DaemonSet's one pod."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def container(self, name: str) -> str:
        """The id of one of them, as the API server knows it."""
        return str(self._told(name).get("containerID", ""))

    def kill(self, *names: str) -> None:
        """Kill some of them, and return when others have taken their places and are ready."""
        before = {name: self.container(name) for name in names}
        for container in before.values():
            self._node.kill_container(container)
        for name in names:
            until(partial(self._is_back, name, before[name]), f"{name} is back")

    def address(self) -> str:
        """The IP address of the pod, which it keeps; empty while it has none."""
        return str(self._status().get("podIP", ""))

    def figures(self, address: str = "") -> dict[str, float]:
        """The plugin's metrics: name, and values of the labels, separated by commas. None where it does not answer.
        Without the address the API server is asked for it."""
        where = address or self.address()
        return {
            ",".join([sample.name.removeprefix(PREFIX), *sample.labels.values()]): sample.value
            for sample in (samples(where, METRICS_PORT) if where else ())
        }

    def life(self) -> Life | None:
        """Which registration of which plugin this is: another one after each restart, of it or of the kubelet. None
        while the kubelet has no list of it."""
        figures = self.figures()
        if not figures.get(f"registered,{GPU_PERCENT}"):
            return None
        return self.container(PLUGIN), figures["registrations_total"]

    def until_registered_after(self, before: Life | None) -> None:
        """Return when the kubelet has a list, and not that of this life, and has taken it in."""
        until(lambda: self.life() not in (None, before), "the plugin has registered again")
        # The plugin knows that the list was sent. Of units that it has not read yet a kubelet admits nothing.
        until(lambda: allocatable() > 0, "the kubelet can give units out")

    def cut_connections(self) -> int:
        """Break all connections that the kubelet has to the plugin, which runs on; how many they were."""
        cut = 0
        pid = self._node.container_pid(self.container(PLUGIN))
        for found in _sockets(pid):
            with found:
                if _is_connection_of_the_kubelet(found):
                    found.shutdown(socket.SHUT_RDWR)
                    cut += 1
        return cut

    @contextmanager
    def away(self) -> Iterator[None]:
        """Take all of them from the node, and bring them back at the end."""
        self._select({NOWHERE: "true"})
        self._node.kubectl("wait", "--for=delete", *PODS, WAIT)
        try:
            yield
        finally:
            self._select({NOWHERE: None})
            self._node.kubectl("rollout", "status", *DAEMONSET, WAIT)

    def _select(self, labels: dict[str, str | None]) -> None:
        change = {"spec": {"template": {"spec": {"nodeSelector": labels}}}}
        self._node.kubectl("patch", *DAEMONSET, "--type=merge", f"--patch={json.dumps(change)}")

    def _is_back(self, name: str, before: str) -> bool:
        told = self._told(name)
        return told.get("containerID", "") not in ("", before) and told["ready"]

    def _told(self, name: str) -> dict[str, Any]:
        """What the pod's status says of a container; nothing as long as that is not known."""
        return next((each for each in self._status().get("containerStatuses", ()) if each["name"] == name), {})

    def _status(self) -> dict[str, Any]:
        """Of the pod that is to stay; nothing while there is none."""
        stay = (each for each in self._node.told(PATH)["items"] if "deletionTimestamp" not in each["metadata"])
        return next((dict(each["status"]) for each in stay), {})


def _sockets(pid: int) -> Iterator[socket.socket]:
    """Copies of the sockets that another process has open (pidfd_getfd(2)), but for what it closes meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(pid)
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if str(link.readlink()).startswith("socket:"):
                    copy = libc.syscall(PIDFD_GETFD, process, int(link.name), 0)
                    if copy >= 0:
                        yield socket.socket(fileno=copy)
                    elif ctypes.get_errno() != errno.EBADF:
                        raise NodeError(f"descriptor {link.name} cannot be copied: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(process)


def _is_connection_of_the_kubelet(found: socket.socket) -> bool:
    if found.family != socket.AF_UNIX or found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return False
    # One that was accepted has the name of the socket that it came in by.
    name = found.getsockname()
    return isinstance(name, str) and Path(name).parent == PLUGIN_SOCKET.parent
