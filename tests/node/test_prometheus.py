"""A real Prometheus, Debian's, reads the manager's metrics and answers questions about them."""

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
import yaml
from onenode.errors import NodeError
from onenode.packages import unpacked
from pages import ON, Pages, shared
from testbed import MIB, PATIENCE_S, Testbed, WireClient

LOOK_S = 0.1
"""How often an answer is asked for that a later scrape will bring."""

TARGET_LABELS = {"namespace": "edgeshare", "pod": "edgeshare-x7k2p", "container": "sharemgr"}
"""What discovery in Kubernetes adds to a target: the manager's own pod."""


class Prometheus:
    """A running server that scrapes one target, four times a second."""

    def __init__(self, program: Path, folder: Path, target: str) -> None:
        config = folder / "prometheus.yml"
        scrape = {
            "job_name": "edgeshare",
            "scrape_interval": "250ms",
            "scrape_timeout": "250ms",
            "honor_labels": True,
            "static_configs": [{"targets": [target], "labels": TARGET_LABELS}],
        }
        config.write_text(yaml.safe_dump({"scrape_configs": [scrape]}))
        storage = f"--storage.tsdb.path={folder / 'data'}"
        self._process = subprocess.Popen(
            [program, f"--config.file={config}", storage, "--web.listen-address=127.0.0.1:0"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._address = ""

    def ready(self) -> None:
        """Waits until it serves; it says in its log where that is."""
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r'msg="Listening on" address=(\S+)', line):
                self._address = found[1]
            if "Server is ready to receive web requests" in line:
                break
        assert self._address, "".join(said)

    def api(self, path: str) -> Any:
        """What its HTTP API answers."""
        with urlopen(f"http://{self._address}/api/v1/{path}", timeout=PATIENCE_S) as answer:
            content = json.load(answer)
        assert content["status"] == "success"
        return content["data"]

    def query(self, expression: str, label: str) -> dict[str, float]:
        """The values of an instant vector, by one of its labels."""
        found = self.api(f"query?query={quote(expression)}")["result"]
        return {each["metric"][label]: float(each["value"][1]) for each in found}

    def until(self, expression: str, label: str, expected: dict[str, float]) -> None:
        """Waits until a query is answered so."""
        deadline_s = time.monotonic() + PATIENCE_S
        while (found := self.query(expression, label)) != expected:
            assert time.monotonic() < deadline_s, f"{expression} is {found}"
            # It tells nobody that it has scraped, so that it has to be asked again.
            time.sleep(LOOK_S)

    def end(self) -> int:
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of `prometheus` and `promtool`, which need nothing but the C library."""
    try:
        return unpacked("prometheus") / "usr/bin"
    except NodeError as error:
        pytest.skip(f"Debian's prometheus cannot be had: {error}")


def take_turns(client: WireClient, count: int) -> None:
    for _ in range(count):
        client.request()
        client.release(client.granted())


def test_promtool_has_no_complaint_of_the_page(programs: Path, testbed: Testbed) -> None:
    pages = Pages(testbed.manager(ON))
    with shared(testbed):
        page = pages.get("/metrics")
    assert "edgeshare_offences_total{" in page
    checked = subprocess.run(
        [programs / "promtool", "check", "metrics"],
        input=page,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_a_prometheus_scrapes_the_manager_and_answers_queries(programs: Path, testbed: Testbed, tmp_path: Path) -> None:
    pages = Pages(testbed.manager(ON))
    prometheus = Prometheus(programs / "prometheus", tmp_path, f"127.0.0.1:{pages.port}")
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
            assert prometheus.query(f"{used} / {cap}", "allocation") == {"one": 0.1}
            assert prometheus.query(f"edgeshare_allocation_refused_context_bytes{one}", "allocation") == {"one": 0}

            prometheus.until("sum by (kind) (edgeshare_offences_total) > 0", "kind", {"unknown": 1})
            assert prometheus.query("process_resident_memory_bytes > 0", "pod").keys() == {TARGET_LABELS["pod"]}
            kinds = {name: about[0]["type"] for name, about in prometheus.api("metadata").items()}
        assert kinds["edgeshare_allocation_grants_total"] == kinds["edgeshare_offences_total"] == "counter"
        assert kinds["edgeshare_allocation_memory_used_bytes"] == "gauge"
        (target,) = prometheus.api("targets")["activeTargets"]
        assert (target["health"], target["lastError"]) == ("up", "")
    finally:
        status = prometheus.end()
    assert status == 0
