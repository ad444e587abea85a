"""A real Prometheus, Debian's, reads the manager's metrics and answers questions about them."""

from pathlib import Path

import pytest

from tests.kit.manager.testbed import MIB, Testbed
from tests.kit.manager.wire_client import WireClient
from tests.kit.pages.pages import ON, Pages, shared
from tests.kit.pages.scraping import Prometheus, complaints, programs_of_prometheus

TARGET_LABELS = {"namespace": "edgeshare", "pod": "edgeshare-x7k2p", "container": "sharemgr"}
"""What discovery in Kubernetes adds to a target: the manager's own pod."""


@pytest.fixture(scope="module")
def programs() -> Path:
    return programs_of_prometheus()


def take_turns(client: WireClient, count: int) -> None:
    for _ in range(count):
        client.request()
        client.release(client.granted())


def test_promtool_has_no_complaint_of_the_page(programs: Path, testbed: Testbed) -> None:
    pages = Pages(testbed.manager(ON))
    with shared(testbed):
        page = pages.get("/metrics")
    assert "edgeshare_offences_total{" in page
    assert complaints(programs, page) == ""


def test_a_prometheus_scrapes_the_manager_and_answers_queries(programs: Path, testbed: Testbed, tmp_path: Path) -> None:
    pages = Pages(testbed.manager(ON))
    prometheus = Prometheus(programs / "prometheus", tmp_path, {f"127.0.0.1:{pages.port}": TARGET_LABELS})
    try:
        prometheus.ready()
        with shared(testbed) as client:
            take_turns(client, 1)
            # What an allocation says of its pod wins over what was discovered of the manager's.
            one = '{namespace="team",pod="train",container="main"}'
            grants = f"edgeshare_allocation_grants_total{one}"
            prometheus.until(grants, "allocation", {"one": 1})
            take_turns(client, 2)
            prometheus.until(grants, "allocation", {"one": 3})
            assert prometheus.query(f"rate({grants}[1m])", "allocation")["one"] > 0
            assert prometheus.query(f"resets({grants}[1m])", "allocation") == {"one": 0}

            used = f"edgeshare_allocation_memory_used_bytes{one}"
            prometheus.until(used, "device", {testbed.uuids[0]: 10 * MIB})
            cap = used.replace("used", "cap")
            # A scrape that takes too long on a busy machine leaves nothing to be told before the next one.
            prometheus.until(f"{used} / {cap}", "allocation", {"one": 0.1})
            prometheus.until(f"edgeshare_allocation_refused_context_bytes{one}", "allocation", {"one": 0})

            prometheus.until("sum by (kind) (edgeshare_offences_total) > 0", "kind", {"unknown": 1})
            pod = TARGET_LABELS["pod"]
            prometheus.until("process_resident_memory_bytes > bool 0", "pod", {pod: 1})
            kinds = {name: about[0]["type"] for name, about in prometheus.api("metadata").items()}
        assert kinds["edgeshare_allocation_grants_total"] == kinds["edgeshare_offences_total"] == "counter"
        assert kinds["edgeshare_allocation_memory_used_bytes"] == "gauge"
        prometheus.until("up", "pod", {pod: 1})
    finally:
        status = prometheus.end()
    assert status == 0
