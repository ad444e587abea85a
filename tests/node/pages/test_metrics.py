"""The manager's pages over HTTP."""

import socket
from itertools import pairwise
from urllib.error import HTTPError

import pytest

from tests.kit.manager.testbed import MIB, Testbed
from tests.kit.pages.pages import ON, Pages, shared
from tests.kit.processes.waiting import PATIENCE_S


@pytest.fixture
def pages(testbed: Testbed) -> Pages:
    return Pages(testbed.manager(ON))


def test_metrics_tell_what_an_allocation_has_and_how_its_clients_offended(testbed: Testbed, pages: Pages) -> None:
    with shared(testbed) as client:
        client.request()
        client.granted()
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


def test_what_an_allocation_has_had_stays_and_grows_as_its_clients_come_and_go(testbed: Testbed, pages: Pages) -> None:
    labels = f"one,main,{testbed.uuids[0]},team,train"
    sums = [f"edgeshare_allocation_{what}_seconds_total,{labels}" for what in ("held", "gpu")]

    def until_clients(count: int) -> list[float]:
        """What the page tells once it has so many of them, as it may be of a moment ago."""
        found = next(each for each in iter(pages.values, {}) if each[f"edgeshare_allocation_clients,{labels}"] == count)
        assert found[f"edgeshare_allocation_memory_peak_bytes,{labels}"] == 10 * MIB
        return [found[name] for name in sums]

    with shared(testbed) as client:
        told = [until_clients(1)]
        for each in (client, testbed.join("one"), testbed.join("one")):
            each.request()
            each.release(each.granted(), gpu_ns=1000)
            each.close()
            told.append(until_clients(3 - len(told)))
    assert told[0] == [0, 0]
    for before, after in pairwise(told):
        assert all(more > less for less, more in zip(before, after, strict=True)), told


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
