"""The node that the other tests of this folder rely on is a real Kubernetes."""

import json
import os
import signal
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.onenode.images import client_image
from tests.kit.onenode.layout import API_SERVICE_ADDRESS, NODE_NAME, PLUGIN_SOCKET
from tests.kit.onenode.node import Node
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import until
from tests.kit.programs.binaries import KUBERNETES

CLIENT = "localhost/edgeshare-test-client:1"
WAIT = "--timeout=120s"  # a safety limit
LATE_S = 8  # longer than containerd waits by default, 5 s


@pytest.fixture(scope="module")
def client(node: Node, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image with a Python program of this module's, imported into the node."""
    folder = tmp_path_factory.mktemp("client")
    script = folder / "client.py"
    script.write_text(
        textwrap.dedent("""\
            import os, signal, ssl, sys, urllib.request
            from pathlib import Path
            if "stay" in sys.argv:
                # It asks nobody: an API server that goes would end it.
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.pause()
            account = Path("/var/run/secrets/kubernetes.io/serviceaccount")
            host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
            context = ssl.create_default_context(cafile=account / "ca.crt")
            answer = urllib.request.urlopen(f"https://{host}:{port}/livez", timeout=20, context=context)
            print(f"api server {host} says {answer.read().decode()}", flush=True)
            """)
    )
    node.import_image(client_image(folder, CLIENT, {"/client.py": script}, ["/usr/bin/python3", "/client.py"]))
    return CLIENT


@pytest.fixture
def start(node: Node, client: str) -> Iterator[Callable[..., str]]:
    """Starts a pod that runs the client with these words and returns its name; all are deleted at the end."""
    names = []

    def start_pod(*words: str) -> str:
        container = {"name": "main", "image": client, "imagePullPolicy": "Never", "args": words}
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "node-test-"},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
            },
        }
        created = node.kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(manifest))
        names.append(created.strip())
        return names[-1]

    yield start_pod
    node.kubectl("delete", WAIT, *names)


def test_the_node_runs_the_pinned_kubernetes(node: Node) -> None:
    info = json.loads(node.kubectl("get", "node", NODE_NAME, "-o", "json"))["status"]
    assert info["nodeInfo"]["kubeletVersion"] == f"v{KUBERNETES.version}"
    assert {c["type"]: c["status"] for c in info["conditions"]}["Ready"] == "True"


def test_a_pod_from_a_local_image_reaches_the_api_server_and_its_log_is_read(
    node: Node, start: Callable[..., str]
) -> None:
    pod = start()
    node.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", pod, WAIT)
    assert node.kubectl("logs", pod) == f"api server {API_SERVICE_ADDRESS} says ok\n"


def test_a_kubelet_restart_keeps_a_pod_running_and_starts_another(node: Node, start: Callable[..., str]) -> None:
    pod = start("stay")
    node.kubectl("wait", "--for=condition=Ready", pod, WAIT)
    container = "jsonpath={.status.containerStatuses[0].containerID}"
    containers_before, socket_before = node.kubectl("get", pod, "-o", container), PLUGIN_SOCKET.stat()

    node.restart_kubelet()

    # What a device plugin sees of it: the kubelet makes its socket anew.
    assert PLUGIN_SOCKET.stat().st_ctime_ns != socket_before.st_ctime_ns
    node.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", start(), WAIT)
    assert node.kubectl("get", pod, "-o", container) == containers_before
    assert node.kubectl("exec", pod, "--", "cat", "/proc/1/comm") == "python3\n"


def test_up_after_a_crash_starts_what_is_gone_and_keeps_the_pods(node: Node, start: Callable[..., str]) -> None:
    pod = start("stay")
    node.kubectl("wait", "--for=condition=Ready", pod, WAIT)
    container = "jsonpath={.status.containerStatuses[0].containerID}"
    before = node.kubectl("get", pod, "-o", container)

    node.crash()
    node.up()

    # The kubelet has read its pods when a new one has run.
    node.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", start(), WAIT)
    assert node.kubectl("get", pod, "-o", container) == before
    assert node.kubectl("exec", pod, "--", "cat", "/proc/1/comm") == "python3\n"


def test_up_after_a_crash_keeps_a_pod_that_containerd_hears_of_late(node: Node, start: Callable[..., str]) -> None:
    pod = start("stay")
    node.kubectl("wait", "--for=condition=Ready", pod, WAIT)
    container = node.kubectl("get", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
    shim = parent(node.container_pid(container))

    def containerd_runs() -> bool:
        try:
            return bool(node.pid("containerd"))
        except NodeError:
            return False

    node.crash()
    os.kill(shim, signal.SIGSTOP)
    with ThreadPoolExecutor() as threads:
        up = threads.submit(node.up)
        try:
            until(containerd_runs, "containerd has been started")
            time.sleep(LATE_S)
        finally:
            os.kill(shim, signal.SIGCONT)
        up.result()

    # The kubelet has read its pods when a new one has run.
    node.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", start(), WAIT)
    assert node.kubectl("exec", pod, "--", "cat", "/proc/1/comm") == "python3\n"


def parent(pid: int) -> int:
    """The process that started another one, or took it over."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["PPid"])


def test_a_second_up_changes_nothing(node: Node) -> None:
    pids = node.layout.state / "pids"
    before = {path.name: path.read_text() for path in pids.iterdir()}
    node.up()
    assert {path.name: path.read_text() for path in pids.iterdir()} == before
    assert "kubelet" in before
