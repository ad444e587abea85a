"""A manager's pages, as somebody who asks for them gets them, and something for them to tell."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.request import Request, urlopen

from prometheus_client.parser import text_string_to_metric_families

from cuda_hook import wire
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from tests.kit.manager.testbed import MIB, Manager, Testbed
from tests.kit.manager.wire_client import WireClient
from tests.kit.processes.waiting import PATIENCE_S

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


@contextmanager
def shared(testbed: Testbed) -> Iterator[WireClient]:
    """An allocation of a pod with a client that has memory, and one that offended."""
    wanted = Allocation(
        id="one",
        device_ids=testbed.uuids[:1],
        request_percent=30,
        memory_mib=100,
        owner=Owner(namespace="team", pod="train", container="main"),
    )
    with testbed.calls() as calls:
        held = calls.hold(wanted, wait_for_manager=False)
        next(held)
        client, wrong = testbed.join("one"), testbed.join("one")
        client.ask(wire.Reserve(1, 10 * MIB, 0, wire.MemoryKind.PLAIN))
        wrong.socket.send(b"nonsense")
        assert wrong.ended()
        yield client
