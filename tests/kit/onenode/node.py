"""The node: it comes up, goes down, loses its kubelet, and takes images in."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.apiserver.administrator import told
from tests.kit.apiserver.certificates import Authority
from tests.kit.onenode import cri
from tests.kit.onenode.control_plane import ControlPlane
from tests.kit.onenode.images import pause_image
from tests.kit.onenode.layout import (
    KUBELET_HEALTH,
    KUBELET_ROOT,
    NODE_NAME,
    OWNER,
    PLUGIN_SOCKET,
    RUN,
    SANDBOX_IMAGE,
    Layout,
)
from tests.kit.onenode.leftovers import CTR, remove_folder, remove_log_links, remove_pod_cgroups, remove_pods
from tests.kit.onenode.worker import Worker
from tests.kit.processes.command import run
from tests.kit.processes.daemons import Daemons
from tests.kit.processes.errors import NodeError
from tests.kit.processes.probe import answers
from tests.kit.programs.binaries import KUBERNETES, Module, program
from tests.kit.programs.packages import NODE_PACKAGES, install, missing

READY_S = 120  # a safety limit for a loaded machine; a start takes about ten seconds in all
STOP_S = 20
# The reverse of the order in which they start.
STOP_ORDER = ("proxy", "scheduler", "controller-manager", "kubelet")


class Node:
    """The one node of this machine, whose state lies where `layout` says."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.kubelet = KUBERNETES
        """What builds the kubelet that is started from here."""
        self._daemons = Daemons(layout.state)

    @property
    def is_up(self) -> bool:
        """Whether `up` has been called and `down` has not, whatever still runs."""
        return self.layout.kubeconfig.exists()

    @property
    def runs(self) -> bool:
        """Whether its kubelet does: not after a crash, or on a machine that was started anew."""
        return self._daemons.runs("kubelet")

    def up(self) -> Path:
        """Start what does not run and return the administrator's kubeconfig once the node is Ready.

        Raises NodeError when something cannot be started, and leaves its log.
        """
        if os.geteuid() != 0:
            raise NodeError("a Kubernetes node needs root: run the same again with sudo")
        install(missing(NODE_PACKAGES))
        for name in KUBERNETES.programs:
            program(KUBERNETES, name)
        with self._alone():
            self._claim()
            for private in (self.layout.config, RUN):
                private.mkdir(parents=True, exist_ok=True, mode=0o700)
            authority = Authority(self.layout.pki)
            control_plane, worker = ControlPlane(self.layout, authority), Worker(self.layout, authority)
            start, wait = self._daemons.start, self._daemons.wait_until
            start("etcd", control_plane.etcd())
            start("containerd", worker.containerd())
            wait("etcd", control_plane.etcd_ready, READY_S)
            start("api-server", control_plane.api_server())
            wait("containerd", cri.ready, READY_S)
            with tempfile.TemporaryDirectory() as scratch:
                self.import_image(pause_image(Path(scratch), SANDBOX_IMAGE))
            wait("api-server", control_plane.api_server_ready, READY_S)
            start("controller-manager", control_plane.controller_manager())
            start("scheduler", control_plane.scheduler())
            start("proxy", worker.proxy())
            self._start_kubelet(worker)
            control_plane.administrator()
            self._wait_for_node()
        return self.layout.kubeconfig

    def down(self) -> None:
        """Stop everything, in the reverse order, and remove all but the logs; also what a crash has left."""
        if os.geteuid() != 0:
            raise NodeError("a Kubernetes node needs root: run the same again with sudo")
        with self._alone():
            if not self.layout.config.exists():
                return
            for daemon in STOP_ORDER:
                self._daemons.stop(daemon, STOP_S)
            # Pods outlive a containerd that crashed, and only one can remove them.
            self._daemons.start("containerd", Worker(self.layout, Authority(self.layout.pki)).containerd())
            self._daemons.wait_until("containerd", cri.ready, READY_S)
            remove_pods()
            # Nobody watches any more, and its state goes too: it need not drain.
            self._daemons.stop("api-server", 2)
            self._daemons.stop("containerd", STOP_S)
            self._daemons.stop("etcd", STOP_S)
            run([program(KUBERNETES, "kube-proxy"), "--cleanup"])
            remove_pod_cgroups()
            remove_log_links(self.layout.pod_logs)
            if OWNER.exists() and OWNER.read_text().strip() == str(self.layout.state):
                remove_folder(KUBELET_ROOT)
            for folder in (RUN, self.layout.scratch, *self._owned(), *self._state_folders()):
                remove_folder(folder)
            self.layout.owned.unlink(missing_ok=True)
            self.layout.kubeconfig.unlink(missing_ok=True)

    def use_kubelet(self, kubelet: Module) -> None:
        """Go over to a kubelet of another version, if it is another one; pods keep running."""
        if kubelet is not self.kubelet:
            program(kubelet, "kubelet")
            self.kubelet = kubelet
            self.restart_kubelet()

    def restart_kubelet(self) -> None:
        """Stop the kubelet and start it again, until device plugins can register; pods keep running."""
        with self.kubelet_down():
            pass

    @contextmanager
    def kubelet_down(self, kill: bool = False) -> Iterator[None]:
        """Stop or kill the kubelet, and start it again at the end, until device plugins can register; pods keep
        running."""
        with self._alone():
            if kill:
                self._daemons.kill("kubelet")
            else:
                self._daemons.stop("kubelet", STOP_S)
            try:
                yield
            finally:
                self._start_kubelet(Worker(self.layout, Authority(self.layout.pki)))

    def pid(self, name: str) -> int:
        """The process of one of the node's own programs, as `kubelet`. Raises NodeError where it does not run."""
        return self._daemons.pid(name)

    @contextmanager
    def api_server_hung(self) -> Iterator[None]:
        """The API server answers nobody until the end; nothing that asks it must be waited for meanwhile."""
        self._daemons.hang("api-server", hung=True)
        try:
            yield
        finally:
            self._daemons.hang("api-server", hung=False)

    def issue(self, name: str, host: str) -> tuple[Path, Path, Path]:
        """The authority's certificate, and certificate and key of one who serves at a host's name."""
        authority = Authority(self.layout.pki)
        return authority.certificate, *authority.issue(name, host, hosts=(f"DNS:{host}",))

    @contextmanager
    def second_scheduler(self, name: str, address: str, server_name: str) -> Iterator[None]:
        """Another kube-scheduler, for the pods that name it, with an extender at `host:port`."""
        plane = ControlPlane(self.layout, Authority(self.layout.pki))
        self._daemons.start(name, plane.second_scheduler(name, plane.extender_at(address, server_name)))
        try:
            yield
        finally:
            self._daemons.stop(name, STOP_S)

    def kill_container(self, container: str) -> None:
        """Kill all processes of a running container, as a machine that is out of memory does.

        It is named as a pod's status does, `containerd://ID`.
        """
        run([*CTR, "tasks", "kill", "--all", "--signal", "SIGKILL", container.removeprefix("containerd://")])

    def container_pid(self, container: str) -> int:
        """The first process of a running container, as this machine numbers it. Raises NodeError."""
        wanted = container.removeprefix("containerd://")
        for line in run([*CTR, "tasks", "list"]).splitlines():
            if line.split()[0] == wanted:
                return int(line.split()[1])
        raise NodeError(f"container {container} does not run")

    def crash(self) -> None:
        """Kill everything but the pods, without a word, to see that `up` and `down` get over it."""
        self._daemons.crash()

    def import_image(self, archive: Path) -> None:
        """Give the node an image from an archive, OCI or Docker; pods use it with `imagePullPolicy: Never`."""
        run([*CTR, "images", "import", archive])

    def has_image(self, name: str) -> bool:
        """Whether it has an image of this name; one whose tag says what it is made of need not be given again."""
        return name in run([*CTR, "images", "list", "--quiet"]).split()

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """Run kubectl as the administrator and return what it printed. Raises NodeError."""
        return run(self.kubectl_command(*words), stdin=stdin)

    def told(self, path: str) -> dict[str, Any]:
        """What the API server tells the administrator of what lies at a path. Raises NodeError."""
        return told(self.layout.kubeconfig, "GET", path)

    def kubectl_command(self, *words: str) -> list[str | Path]:
        """The command line of that."""
        return [program(KUBERNETES, "kubectl"), f"--kubeconfig={self.layout.kubeconfig}", *words]

    def own(self, folder: Path) -> None:
        """Have `down` remove a folder of the machine, which pods are about to use.

        Raises NodeError when it holds what somebody else left there.
        """
        owned = self._owned()
        if folder in owned:
            return
        if folder.exists() and any(folder.iterdir()):
            raise NodeError(f"{folder} holds files that are not the test node's: stop what uses them and remove it")
        self.layout.owned.write_text("".join(f"{each}\n" for each in (*owned, folder)))

    def _owned(self) -> list[Path]:
        if not self.layout.owned.exists():
            return []
        return [Path(line) for line in self.layout.owned.read_text().splitlines()]

    def _start_kubelet(self, worker: Worker) -> None:
        if self._daemons.runs("kubelet"):
            return
        before_ns = _changed_ns(PLUGIN_SOCKET)
        self._daemons.start("kubelet", worker.kubelet(self.kubelet))
        # Its health answers before its device manager has made its socket anew, which device plugins watch.
        self._daemons.wait_until(
            "kubelet",
            lambda: _changed_ns(PLUGIN_SOCKET) not in (None, before_ns) and answers(KUBELET_HEALTH),
            READY_S,
        )

    def _state_folders(self) -> list[Path]:
        return [path for path in self.layout.state.iterdir() if path.is_dir() and path != self.layout.logs]

    def _wait_for_node(self) -> None:
        timeout = f"--timeout={READY_S}s"
        self.kubectl("wait", "--for=create", f"node/{NODE_NAME}", timeout)
        self.kubectl("wait", "--for=condition=Ready", f"node/{NODE_NAME}", timeout)
        # The controller manager's work: without it no pod is admitted.
        self.kubectl("wait", "--for=create", "serviceaccount/default", timeout)

    def _claim(self) -> None:
        """Take the kubelet's folder, of which a machine has one. Raises NodeError where it is another's."""
        if OWNER.exists():
            if (owner := OWNER.read_text().strip()) != str(self.layout.state):
                raise NodeError(
                    f"this machine already has a test node, whose state is in {owner}: stop it first, with "
                    f"EDGESHARE_CACHE={Path(owner).parent} and `make cluster-down`"
                )
        elif any(not path.is_dir() for path in KUBELET_ROOT.rglob("*")):
            raise NodeError(
                f"{KUBELET_ROOT} holds files of another kubelet, which this test node would disturb: "
                "use another machine, or remove the folder if no kubelet uses it"
            )
        else:
            self._daemons.forget_logs()
            # What a node has left whose state folder was removed: its keys are gone with that.
            remove_folder(self.layout.scratch)
        KUBELET_ROOT.mkdir(parents=True, exist_ok=True)
        OWNER.write_text(f"{self.layout.state}\n")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the node against other scripts that start or stop it."""
        self.layout.state.mkdir(parents=True, exist_ok=True)
        with (self.layout.state.parent / f"{self.layout.state.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _changed_ns(path: Path) -> int | None:
    """When the inode changed last; its number may be the same for another file. None while there is none, as when a
    kubelet has deleted its socket to make it anew."""
    try:
        return path.stat().st_ctime_ns
    except FileNotFoundError:
        return None
