"""A real API server on an etcd of its own, with nothing behind it: no controllers, no scheduler, no node."""

import json
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.apiserver.administrator import told
from tests.kit.apiserver.certificates import Authority
from tests.kit.onenode.control_plane import ControlPlane
from tests.kit.onenode.layout import Layout, Ports
from tests.kit.onenode.leftovers import remove_folder
from tests.kit.processes.daemons import Daemons
from tests.kit.processes.errors import NodeError
from tests.kit.programs.binaries import KUBERNETES, program
from tests.kit.programs.packages import NODE_PACKAGES, install, missing

READY_S = 120  # a safety limit for a loaded machine; a start takes about five seconds in all
STOP_S = 20
IN_FORCE_S = 60  # a safety limit: the API server learns of its own policies by a watch
LOOK_S = 0.3  # it takes up to a second, and who asks at once again takes a processor meanwhile
PORTS = range(20_000, 30_000)
"""Below those that Linux gives to whoever names none: what is free here is so, too, when it is listened at seconds
later."""


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

    def ask(
        self, method: str, path: str, thing: Mapping[str, Any] | None = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        """What the administrator is answered, as an object. Raises NodeError where it does not succeed."""
        return told(self.kubeconfig, method, path, thing, kind)

    def create(self, thing: Mapping[str, Any]) -> Done:
        """Make an object, or those of a List, whatever comes of it."""
        return self.kubectl("create", "-f", "-", stdin=json.dumps(thing))

    def bind(self, name: str, annotations: Mapping[str, str]) -> Done:
        """Bind a pod to node-a, whatever comes of it."""
        path = f"/api/v1/namespaces/default/pods/{name}/binding"
        return self.kubectl("create", f"--raw={path}", "-f", "-", stdin=json.dumps(binding(name, annotations)))

    def admitted(self, pods: Sequence[Mapping[str, Any]]) -> tuple[set[str], list[str]]:
        """The names of the pods that it would take in as the administrator's, and what it says of the others."""
        everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
        done = self.kubectl("create", "--dry-run=server", "--output=name", "-f", "-", stdin=everything)
        return {line.removeprefix("pod/") for line in done.stdout.splitlines()}, done.stderr.splitlines()

    def define(self, crds: Path) -> None:
        """Apply definitions of custom resources, and return when their objects can be made. Raises NodeError."""
        where = f"--filename={crds}"
        for words in (("apply", where), ("wait", "--for=condition=Established", where, f"--timeout={READY_S}s")):
            process = self.kubectl(*words)
            if process.returncode != 0:
                raise NodeError(f"{crds} cannot be applied: {process.stderr.strip()}")


def binding(name: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    """A pod's to node-a."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-a"}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def done(process: Done) -> Done:
    """The same, if it succeeded."""
    assert process.returncode == 0, process.stderr
    return process


def refused(process: Done, said: str) -> None:
    """Holds it to having been refused, and to having been told this."""
    assert process.returncode != 0
    assert said in process.stderr, process.stderr


def until_told(answer: Callable[[], str], said: str) -> None:
    """Asks until a policy answers with its own words. What is said before may also be that somebody has no right: of
    rights, too, the API server learns by a watch."""
    deadline_s = time.monotonic() + IN_FORCE_S
    while said not in (told := answer()):
        assert time.monotonic() < deadline_s, f"not in force after {IN_FORCE_S} s: {said}; but: {told}"
        time.sleep(LOOK_S)


@contextmanager
def api_server(state: Path, *options: str) -> Iterator[ApiServer]:
    """An API server with these options, whose state is in `state`, beside any other on this machine. Raises
    NodeError."""
    install(missing({"etcd": NODE_PACKAGES["etcd"]}))
    layout = Layout(state, Ports(*free_ports(4)))
    layout.config.mkdir(parents=True, exist_ok=True, mode=0o700)
    daemons, authority = Daemons(layout.state), Authority(layout.pki)
    plane = ControlPlane(layout, authority)
    # One that was killed may have left something under the same port.
    remove_folder(layout.scratch)
    with ExitStack() as stack:
        stack.callback(remove_folder, layout.scratch)
        stack.callback(daemons.stop, "etcd", STOP_S)
        daemons.start("etcd", plane.etcd())
        daemons.wait_until("etcd", plane.etcd_ready, READY_S)
        stack.callback(daemons.stop, "api-server", STOP_S)
        daemons.start("api-server", [*plane.api_server(), *options])
        daemons.wait_until("api-server", plane.api_server_ready, READY_S)
        server = ApiServer(layout.api_server, plane.administrator(), plane, authority, daemons)
        # It makes it when it is ready already.
        done(server.kubectl("wait", "--for=create", "namespace/default", f"--timeout={READY_S}s"))
        yield server


def free_ports(count: int) -> list[int]:
    """So many that nobody listens at."""
    found: list[int] = []
    with ExitStack() as stack:
        for port in random.sample(PORTS, len(PORTS)):
            if len(found) == count:
                return found
            with suppress(OSError):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                found.append(port)
    raise NodeError(f"of the ports {PORTS[0]} to {PORTS[-1]} not {count} are free")
