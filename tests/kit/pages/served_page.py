"""``edgeshare top --web`` of a testbed's manager, and what comes from it over HTTP."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any

from edgeshare.v1.allocations_pb2 import Allocation, Owner
from tests.kit.manager.testbed import Testbed
from tests.kit.processes.waiting import PATIENCE_S

Told = dict[str, Any]


class ServedPage:
    """One that is served until its testbed ends."""

    def __init__(self, testbed: Testbed, port: int = 0) -> None:
        self.process = testbed.fork(*arguments(testbed, f"127.0.0.1:{port}"))
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.said)
        assert found, self.said
        self.port = int(found[1])
        self.url = found[0]

    @contextmanager
    def asked(self, path: str, **headers: str) -> Iterator[HTTPResponse]:
        """What is answered."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as connection:
            connection.request("GET", path, headers=headers)
            yield connection.getresponse()

    @contextmanager
    def followed(self) -> Iterator[Iterator[Told]]:
        """What is told by and by, of pictures."""
        with self.asked("/events") as answer:
            yield pictures(answer)


def arguments(testbed: Testbed, listen: str) -> tuple[str, ...]:
    """Those of the command."""
    return ("top", "--web", "--listen", listen, "--runtime-dir", str(testbed.runtime_dir))


def pictures(answer: HTTPResponse) -> Iterator[Told]:
    """The pictures of a stream of events."""
    kind = ""
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data" and kind == "picture":
            yield json.loads(value)


def first(told: Iterator[Told], holds: Callable[[Told], bool]) -> Told:
    """The first for which something holds."""
    return next(each for each in told if holds(each))


def shares(told: Told, gpu: int = 0) -> list[Any]:
    """Those of one GPU."""
    return list(told["picture"]["nodes"][0]["devices"][gpu]["shares"])


@contextmanager
def held(testbed: Testbed, name: str, percent: int = 30, **owner: str) -> Iterator[None]:
    """An allocation of GPU 0, meanwhile."""
    allocation = Allocation(
        id=name,
        device_ids=testbed.uuids[:1],
        request_percent=percent,
        memory_mib=512,
        owner=Owner(**owner) if owner else Owner(namespace="team", pod=name, container="main"),
    )
    with testbed.calls() as calls, closing(calls.hold(allocation, wait_for_manager=False)) as answers:
        next(answers)
        yield
