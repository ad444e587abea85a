"""Manifests of docs/begin/moving.md that are ours are taken in by the chart's policies, and read as they are meant."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgeshare.contract.names import GPU_PERCENT_LIMIT
from sharemgr.cluster.state.pods import parse_pod
from sharemgr.cluster.state.request import Ask
from tests.kit.apiserver.api_server import ApiServer

PAGE = Path(__file__).parents[3] / "docs/begin/moving.md"
BLOCKS = re.findall(r"^```yaml\n# edgeshare\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
OURS: dict[str, dict[str, Any]] = {pod["metadata"]["name"]: pod for pod in map(yaml.safe_load, BLOCKS)}
MEANT = {
    "from-time-slicing": Ask(1, 25),
    "from-hami": Ask(1, 30, 3000),
    "from-kubeshare": Ask(1, 30, 4096),
    "from-gpushare": Ask(1, 25, 4096),
}


def test_all_of_them_are_taken_in(installed: ApiServer) -> None:
    admitted, messages = installed.admitted(list(OURS.values()))
    assert (admitted, messages) == (set(MEANT), [])


@pytest.mark.parametrize("name", MEANT)
def test_each_asks_for_what_is_meant(name: str) -> None:
    pod = parse_pod({**OURS[name], "metadata": {**OURS[name]["metadata"], "uid": "u", "namespace": "team"}})
    assert (pod.request.asks, pod.fault) == ((MEANT[name],), "")


def test_a_limit_is_said_where_there_was_one() -> None:
    limits = {name: pod["metadata"].get("annotations", {}).get(GPU_PERCENT_LIMIT) for name, pod in OURS.items()}
    assert {name: limit for name, limit in limits.items() if limit} == {"from-kubeshare": "50"}
