"""Certificates as the chart's CronJob renews them on the node, and what is reached with them by the documents'
commands, through kubectl's port-forward."""

import base64
import json
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from edgeshare.contract.names import GPU_PERCENT
from edgeshare.kube.kube import Kube
from sharemgr.cluster.issuing.issuing import issue
from sharemgr.cluster.issuing.kube_secrets import SUFFIXES, KubeSecrets
from sharemgr.cluster.issuing.renewal import Name, for_assigner, for_status, service_hosts
from simgpu.machine import Machine
from tests.kit.onenode.installed import release
from tests.kit.onenode.installed.assigner import HOST, PORT, SECRET, SERVICE
from tests.kit.onenode.installed.parts import Parts
from tests.kit.onenode.installed.release import GPUS, NAME
from tests.kit.onenode.installed.scheduler import until_gone
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import WAIT, container, pod
from tests.kit.onenode.shell import Shell, block_with
from tests.kit.processes.waiting import PATIENCE_S, until

IN_NAMESPACE = f"--namespace={NAME}"
STATUS = f"{NAME}-status"
HELD_DAYS, AGE_DAYS = 365, 300
TEAM, WHO = "team", "me"  # as in the documents
PORT_FORWARD = re.compile(r"^(kubectl .*port-forward .*?) &.*\n", re.MULTILINE)


@pytest.fixture(scope="module")
def installed(node: Node, edgeshare: Machine) -> Iterator[Node]:
    """The assigner and the cluster's status, with certificates that somebody made so long ago that they are due; and in
    a namespace a pod with a share, and somebody who may list it."""
    place = KubeSecrets(Kube.from_kubeconfig(node.layout.kubeconfig), NAME, SECRET)
    # As by `--host localhost`, for a browser beside a port-forward.
    leaves = for_assigner(service_hosts(SERVICE, NAME)) | for_status(service_hosts(STATUS, NAME) | {"localhost"})
    list(issue(place, leaves, datetime.now(UTC) - timedelta(days=AGE_DAYS), HELD_DAYS))
    # The chart refuses what other tests have of it beside the assigner.
    plain = ("--set=devicePlugin.config.configs=null", "--set=devicePlugin.config.advertise=all")
    release.helm(node, "upgrade", NAME, release.CHART, "--reset-then-reuse-values", *plain)
    shell = Shell(node)
    told = shell.type(block_with("docs/install/placement.md", "--set assigner.enabled=true"))
    assert told.rstrip().endswith(address(node, SERVICE))
    _, _, upgrade = block_with("docs/run/cluster-status.md", "--set clusterStatus.enabled=true").partition("\n")
    shell.type(f"{upgrade.rstrip()} --set clusterStatus.page=true --set assigner.tls.renew=true")
    release.until_ready(node, GPUS)
    node.kubectl("rollout", "status", IN_NAMESPACE, f"deployment/{SERVICE}", WAIT)
    # A port-forward to a Service takes the pod that has been ready for longest, also one of before that is ending.
    until(
        lambda: not any("deletionTimestamp" in each["metadata"] for each in pods(node)), "the pods of before are gone"
    )
    node.kubectl("create", "namespace", TEAM)
    node.kubectl("create", "serviceaccount", WHO)
    may = (f"--namespace={TEAM}", "create", "rolebinding", WHO, "--clusterrole=view")
    node.kubectl(*may, f"--serviceaccount=default:{WHO}")
    shared = pod("web", [container("web", "main", "--seconds", "600", limits={GPU_PERCENT: 30})])
    node.kubectl("create", f"--namespace={TEAM}", "--filename=-", stdin=json.dumps(shared))
    node.kubectl("wait", f"--namespace={TEAM}", "--for=condition=Ready", "pod/web", WAIT)
    yield node
    node.kubectl("delete", "serviceaccount", WHO)
    node.kubectl("delete", WAIT, f"namespace/{TEAM}")
    # The jobs go with their CronJob.
    release.upgrade(node)
    until_gone(node)
    node.kubectl("delete", IN_NAMESPACE, "secret", *(f"{SECRET}{suffix}" for suffix in SUFFIXES.values()))
    release.until_ready(node, GPUS)


def secrets(node: Node, key: str) -> dict[Name, bytes]:
    """One of the files of each Secret."""
    found = {}
    for name, suffix in SUFFIXES.items():
        data = json.loads(node.kubectl("get", IN_NAMESPACE, f"secret/{SECRET}{suffix}", "--output=json"))["data"]
        found[name] = base64.b64decode(data[key])
    return found


def address(node: Node, service: str) -> str:
    return node.kubectl("get", IN_NAMESPACE, f"service/{service}", "--output=jsonpath={.spec.clusterIP}")


def served(host: str, port: int) -> bytes:
    """The certificate that a server shows to whoever comes; PEM. Nothing where none does."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with (
            socket.create_connection((host, port), timeout=PATIENCE_S) as connection,
            context.wrap_socket(connection) as shown,
        ):
            return ssl.DER_cert_to_PEM_cert(shown.getpeercert(binary_form=True) or b"").encode()
    except OSError:
        return b""


def all_served(node: Node) -> dict[Name, list[bytes]]:
    """What each of them shows at its ports."""
    status = address(node, STATUS)
    return {
        Name.SERVER: [served(address(node, SERVICE), PORT)],
        Name.STATUS_SERVER: [served(status, 9467), served(status, 9469)],
        Name.MANAGER: [served(Parts(node).address(), 9468)],
    }


def until_served(node: Node, certificates: dict[Name, bytes]) -> None:
    """Return when each of them shows its own of these."""
    ports = {Name.SERVER: 1, Name.STATUS_SERVER: 2, Name.MANAGER: 1}
    wanted = {name: [certificates[name]] * count for name, count in ports.items()}

    def are_served() -> bool:
        look_at_once(node)
        return all_served(node) == wanted

    until(are_served, "the Secrets' certificates are served")


def pods(node: Node) -> list[Any]:
    """Of the release, those that are ending among them."""
    found: list[Any] = json.loads(node.kubectl("get", IN_NAMESPACE, "pods", "--output=json"))["items"]
    return found


def lives(node: Node) -> list[tuple[str, int]]:
    """The containers of the release, and how often each was restarted."""
    statuses = [status for each in pods(node) for status in each["status"].get("containerStatuses", ())]
    return sorted((each["containerID"], each["restartCount"]) for each in statuses if each["name"] != "certificates")


def renew(node: Node, job: str) -> list[str]:
    """Runs the CronJob's job at once, as an administrator does, and returns what became of each certificate."""
    node.kubectl("create", IN_NAMESPACE, "job", job, f"--from=cronjob/{NAME}-certificates")
    node.kubectl("wait", IN_NAMESPACE, "--for=condition=Complete", f"job/{job}", WAIT)
    lines = node.kubectl("logs", IN_NAMESPACE, f"job/{job}").splitlines()
    return [line.partition(": ")[2].partition(",")[0] for line in lines]


def look_at_once(node: Node) -> None:
    """Have the kubelet bring pods their Secrets as it knows them, and of their changes it learns in its own time: it
    does so each 60 to 90 s, and at any change of a pod."""
    for each in node.kubectl("get", IN_NAMESPACE, "pods", "--output=name").split():
        node.kubectl("annotate", IN_NAMESPACE, "--overwrite", each, f"edgeshare-test/looked-at={datetime.now(UTC)}")


def test_what_the_cron_jobs_pod_renews_is_served_without_a_restart(installed: Node, tmp_path: Path) -> None:
    node = installed
    before, keys, ran = secrets(node, "tls.crt"), secrets(node, "tls.key"), lives(node)
    until_served(node, before)
    assert renew(node, "renew") == ["kept", *["renewed"] * 5]
    after = secrets(node, "tls.crt")
    new = {name for name in after if after[name] != before[name]}
    assert new == set(SUFFIXES) - {Name.AUTHORITY}
    assert {name for name, key in secrets(node, "tls.key").items() if key != keys[name]} == new
    until_served(node, after)
    assert lives(node) == ran
    assert filtered(node, tmp_path) == 200
    # What is not due stays as it is.
    assert renew(node, "renew-again") == ["kept"] * 6
    assert secrets(node, "tls.crt") == after


def filtered(node: Node, folder: Path) -> int:
    """With which status the assigner answers kube-scheduler's certificate."""
    (folder / "ca.crt").write_bytes(secrets(node, "tls.crt")[Name.AUTHORITY])
    for key in ("tls.crt", "tls.key"):
        (folder / key).write_bytes(secrets(node, key)[Name.CLIENT])
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    about = {"metadata": {"uid": "u", "namespace": "default", "name": "asked-about"}}
    with (
        socket.create_connection((address(node, SERVICE), PORT), timeout=PATIENCE_S) as connection,
        context.wrap_socket(connection, server_hostname=HOST) as shown,
    ):
        asked = HTTPConnection(HOST)
        asked.sock = shown
        asked.request("POST", "/filter", json.dumps({"Pod": about, "NodeNames": [NODE_NAME]}))
        with asked.getresponse() as answer:
            return answer.status


@contextmanager
def forwarded(node: Node, command: str) -> Iterator[None]:
    """The command runs, a port-forward of the documents, and answers."""
    words = command.split()
    assert words[0] == "kubectl"
    with subprocess.Popen(node.kubectl_command(*words[1:]), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("Forwarding from 127.0.0.1:")
            yield
        finally:
            process.terminate()


def shown(page: str) -> tuple[str, str]:
    """The port-forward of a page's block that has one, and the commands after it."""
    block = block_with(page, " port-forward ")
    found = PORT_FORWARD.search(block)
    assert found
    return found[1], block[found.end() :]


def test_the_clusters_status_is_asked_through_a_port_forward_as_the_readme_has_it(
    installed: Node, tmp_path: Path
) -> None:
    shell = Shell(installed, tmp_path)
    forward, asked = shown("README.md")
    with forwarded(installed, forward):
        (node,) = json.loads(shell.type(asked))["nodes"]
        assert [each["allocation"]["owner"]["pod"] for each in node["status"]["allocations"]] == ["web"]
        # The command takes a kubeconfig's token: the assigner's own account may list all pods.
        settings = json.loads(installed.layout.kubeconfig.read_text())
        settings["users"][0]["user"] = {"token": installed.kubectl("create", IN_NAMESPACE, "token", SERVICE).strip()}
        (tmp_path / "kubeconfig").write_text(json.dumps(settings))
        status = block_with("docs/run/cluster-status.md", "--cluster-status-ca ca.crt")
        assert f"{TEAM}/web/main" in shell.type(status, KUBECONFIG=str(tmp_path / "kubeconfig"))


def test_the_page_is_read_through_a_port_forward_at_localhost_by_who_shows_a_token(
    installed: Node, tmp_path: Path
) -> None:
    forward, token = shown("docs/run/cluster-status.md")
    (tmp_path / "ca.crt").write_bytes(secrets(installed, "tls.crt")[Name.AUTHORITY])
    context = ssl.create_default_context(cafile=tmp_path / "ca.crt")

    def asked(path: str, **headers: str) -> tuple[int, str]:
        with closing(HTTPSConnection("localhost", 9469, context=context, timeout=PATIENCE_S)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    with forwarded(installed, forward):
        bearer = f"Bearer {Shell(installed).type(token).strip()}"
        assert asked("/")[0] == 401
        assert asked("/", Authorization=bearer)[0] == 403
        status, page = asked(f"/?namespace={TEAM}", Authorization=bearer)
        assert (status, "<html" in page) == (200, True)
