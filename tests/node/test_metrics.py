"""The manager's pages over HTTP, and what is told of processes that no hook joined."""

import os
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from testbed import MIB, PATIENCE_S, Manager, Testbed

from cuda_hook import wire
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from simgpu.native import BURN

sys.path.insert(0, str(Path(__file__).parent.parent / "kubelet"))

from scripted_api_server import serving

ON = "metrics_address: 127.0.0.1:0\n"


class Pages:
    """A manager's pages."""

    def __init__(self, manager: Manager) -> None:
        found = re.search(r"metrics at http://127\.0\.0\.1:(\d+)/metrics", manager.log())
        assert found is not None
        self.port = int(found[1])

    def get(self, path: str, method: str = "GET") -> str:
        request = Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        with urlopen(request, timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def values(self) -> dict[str, float]:
        """Each sample by its name, with the labels' values in the order of their names."""
        return {
            ",".join([sample.name, *(sample.labels[name] for name in sorted(sample.labels))]): sample.value
            for family in text_string_to_metric_families(self.get("/metrics"))
            for sample in family.samples
        }

    def raw(self, sent: bytes) -> bytes:
        """What comes back for these bytes, until the manager closes."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            with suppress(ConnectionResetError):
                while part := connection.recv(65536):
                    answer += part
        return answer


@pytest.fixture
def pages(testbed: Testbed) -> Pages:
    return Pages(testbed.manager(ON))


def test_metrics_tell_what_an_allocation_has_and_how_its_clients_offended(testbed: Testbed, pages: Pages) -> None:
    with testbed.calls() as calls:
        wanted = Allocation(
            id="one",
            device_ids=testbed.uuids[:1],
            request_percent=30,
            memory_mib=100,
            owner=Owner(namespace="team", pod="train", container="main"),
        )
        held = calls.hold(wanted, wait_for_manager=False)
        next(held)
        client, wrong = testbed.join("one"), testbed.join("one")
        client.ask(wire.Reserve(1, 10 * MIB, 0, wire.MemoryKind.PLAIN))
        client.request()
        client.granted()
        wrong.socket.send(b"nonsense")
        assert wrong.ended()
        # Whoever is at it twice, since the page may be of a moment ago.
        values = next(
            each for each in iter(pages.values, None) if each["edgeshare_offences_total,one,main,unknown,team,train"]
        )
    labels = f"one,main,{testbed.uuids[0]},team,train"
    assert values[f"edgeshare_allocation_request_ratio,{labels}"] == 0.3
    assert values[f"edgeshare_allocation_limit_ratio,{labels}"] == 1
    assert values[f"edgeshare_allocation_grants_total,{labels}"] == 1
    assert values[f"edgeshare_allocation_clients,{labels}"] == 1
    assert values[f"edgeshare_allocation_memory_cap_bytes,{labels}"] == 100 * MIB
    assert values[f"edgeshare_allocation_memory_used_bytes,{labels}"] == 10 * MIB
    assert values["edgeshare_offences_total,one,main,unknown,team,train"] == 1
    assert values["edgeshare_offences_total,one,main,malformed,team,train"] == 0
    assert values["edgeshare_records_total"] >= 5
    assert values["process_resident_memory_bytes"] > 0


def test_probes_are_answered(pages: Pages) -> None:
    assert pages.get("/healthz") == pages.get("/readyz") == "ok\n"
    assert pages.get("/metrics?x=1", method="HEAD") == ""


def test_other_pages_and_methods_are_refused(pages: Pages) -> None:
    for method, path, status in (("GET", "/secrets", 404), ("POST", "/metrics", 405), ("GET", "/metrics/", 404)):
        with pytest.raises(HTTPError) as caught:
            pages.get(path, method)
        caught.value.close()
        assert caught.value.code == status


NO_REQUESTS = {
    b"\x16\x03\x01\r\n\r\n": b"HTTP/1.1 400",
    b"GET /healthz\r\n\r\n": b"HTTP/1.1 400",
    b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n": b"HTTP/1.1 431",
    b"GET /healthz HTTP/1.1\r\n": b"",
    b"": b"",
}
"""What is sent, and how the answer begins."""


def test_what_is_no_request_gets_no_page_and_the_next_one_does(pages: Pages) -> None:
    for sent, begin in NO_REQUESTS.items():
        # A connection that is reset may have lost its answer.
        assert pages.raw(sent)[: len(begin) or None] in (begin, b"")
        assert pages.get("/healthz") == "ok\n"


def test_connections_that_say_nothing_keep_nobody_away_for_long(pages: Pages) -> None:
    idle = [socket.create_connection(("127.0.0.1", pages.port), PATIENCE_S) for _ in range(50)]
    try:
        # Sixteen at a time are waited for, and no longer than a request may take; the others are sent away at once.
        assert sum(connection.recv(1) == b"" for connection in idle) == len(idle)
        assert pages.get("/healthz") == "ok\n"
    finally:
        for connection in idle:
            connection.close()


def test_an_address_that_is_taken_is_said(testbed: Testbed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = testbed.edgeshare(*testbed.manager_arguments(f"metrics_address: {address}\n"))
    assert result.returncode == 1
    assert f"metrics_address {address}: cannot be listened on" in result.stderr.splitlines()[-1]


def groups() -> Path | None:
    """Where control groups can be made, on this machine."""
    places = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup"))
    return next((place for place in places if os.access(place / "cgroup.procs", os.W_OK)), None)


@contextmanager
def container(uid: str, container_id: str) -> Iterator[Path]:
    """A control group as a kubelet makes it; yields the file that takes pids in."""
    place = groups()
    assert place is not None
    folders = [place / f"edgeshare-test-{os.getpid()}"]
    folders += [folders[0] / f"pod{uid}", folders[0] / f"pod{uid}" / container_id]
    for folder in folders:
        folder.mkdir()
    try:
        yield folders[-1] / "cgroup.procs"
    finally:
        for folder in reversed(folders):
            folder.rmdir()


@pytest.mark.skipif(groups() is None, reason="no control group can be made here")
def test_a_process_that_no_hook_joined_is_told_once_with_its_pod(testbed: Testbed) -> None:
    uid, container_id = str(uuid.uuid4()), "0123456789abcdef" * 4
    with serving(testbed.root) as (api, kubeconfig), container(uid, container_id) as joined:
        manager = testbed.manager(f"{ON}node_name: n1\nkubeconfig: {kubeconfig}\n")
        pages = Pages(manager)
        with testbed.calls() as calls:
            owner = Owner(namespace="team", pod="train", pod_uid=uid, container="main")
            wanted = Allocation(id="one", device_ids=testbed.uuids[:1], request_percent=30, owner=owner)
            held = calls.hold(wanted, wait_for_manager=False)
            next(held)
            stripped = subprocess.Popen([BURN, "--seconds", "600"], env=testbed.environment, stdout=subprocess.DEVNULL)
            try:
                joined.write_text(str(stripped.pid))
                status = testbed.until(lambda status: bool(status.devices[0].unmanaged_processes))
                (found,) = status.devices[0].unmanaged_processes
                assert (found.pid, found.pod_uid, found.container_id) == (stripped.pid, uid, container_id)
                while not api.events:
                    os.sched_yield()
                for _ in zip(range(25), calls.watch(100_000_000), strict=False):
                    # For two looks more: it is told once.
                    pass
                device = f"{testbed.uuids[0]},0,t4"
                unmanaged = [
                    value for name, value in pages.values().items() if name.startswith("edgeshare_device_unmanaged")
                ]
                assert sorted(unmanaged) == [0, 1], device
            finally:
                stripped.kill()
                stripped.wait(PATIENCE_S)
        (event,) = api.events
        assert event["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "train",
            "uid": uid,
        }
        assert event["reason"] == "UnmanagedGPUProcess"
        assert str(stripped.pid) in event["message"]
        assert testbed.uuids[0] in event["message"]
        said = [line for line in manager.log().splitlines() if "no hook joined it" in line]
        assert len(said) == 1
        assert "in pod team/train (allocation one)" in said[0]
        manager.end()


@pytest.mark.skipif(groups() is None, reason="no control group can be made here")
def test_a_stranger_of_a_pod_with_no_share_is_told_to_that_pod_and_one_outside_pods_is_logged(testbed: Testbed) -> None:
    uid = str(uuid.uuid4())
    with serving(testbed.root) as (api, kubeconfig), container(uid, "f" * 64) as joined:
        api.put_pod("other", uid, {})
        manager = testbed.manager(f"node_name: n1\nkubeconfig: {kubeconfig}\n")
        burns = [
            subprocess.Popen([BURN, "--seconds", "600"], env=testbed.environment, stdout=subprocess.DEVNULL)
            for _ in range(2)
        ]
        try:
            joined.write_text(str(burns[0].pid))
            testbed.until(lambda status: len(status.devices[0].unmanaged_processes) == 2)
            while not api.events:
                os.sched_yield()
        finally:
            for burn in burns:
                burn.kill()
                burn.wait(PATIENCE_S)
        (event,) = api.events
        assert event["involvedObject"]["name"] == "other"
        assert f"process {burns[1].pid}, in no pod, uses GPU" in manager.log()
        manager.end()
