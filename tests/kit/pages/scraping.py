"""A real Prometheus, Debian's, that scrapes what it is told to."""

import json
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
import yaml

from tests.kit.processes.errors import NodeError
from tests.kit.programs.packages import unpacked

PATIENCE_S = 60
"""No test waits longer for anything; what is awaited takes milliseconds."""

LOOK_S = 0.1
"""How often an answer is asked for that a later scrape will bring."""


def programs_of_prometheus() -> Path:
    """The folder of `prometheus` and `promtool`, which need nothing but the C library. Skips where they cannot be
    had."""
    try:
        return unpacked("prometheus") / "usr/bin"
    except NodeError as error:
        pytest.skip(f"Debian's prometheus cannot be had: {error}")


def complaints(programs: Path, page: str) -> str:
    """What promtool says of a page; nothing where all is well."""
    checked = subprocess.run(
        [programs / "promtool", "check", "metrics"],
        input=page,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return f"{checked.stdout}{checked.stderr}" or ("" if checked.returncode == 0 else f"status {checked.returncode}")


class Prometheus:
    """A running server that scrapes some targets, each second."""

    def __init__(self, program: Path, folder: Path, targets: Mapping[str, Mapping[str, str]]) -> None:
        """``targets``: by address the labels that discovery in Kubernetes adds."""
        config = folder / "prometheus.yml"
        scrape = {
            "job_name": "edgeshare",
            "scrape_interval": "1s",
            "scrape_timeout": "1s",
            "honor_labels": True,
            "static_configs": [{"targets": [target], "labels": dict(labels)} for target, labels in targets.items()],
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
        """Waits until it serves, and has said in its log where: two threads of it say so, in either order."""
        assert self._process.stderr is not None
        said, serves = [], False
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r'msg="Listening on" address=(\S+)', line):
                self._address = found[1]
            serves = serves or "Server is ready to receive web requests" in line
            if serves and self._address:
                return
        raise AssertionError("".join(said))

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
