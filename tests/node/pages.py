"""A manager's pages, as somebody who asks for them gets them."""

import re
import socket
from contextlib import suppress
from urllib.request import Request, urlopen

from prometheus_client.parser import text_string_to_metric_families
from testbed import PATIENCE_S, Manager

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
