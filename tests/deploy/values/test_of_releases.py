"""Values that a release was installed with are taken by the chart of today, and what was set says something still."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.kit.deploy.objects import Object, Render

RECORDED = Path(__file__).parent / "of_releases"
SHIPPED = sorted(RECORDED.glob("*-shipped.yaml"))
SET = sorted(RECORDED.glob("*-set.yaml"))
KINDS = ("monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/PrometheusRule")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_a_release_was_shipped_with_is_taken(render: Render, path: Path) -> None:
    kinds = {each["kind"] for each in render(files=[path])}
    assert {"DaemonSet", "ClusterRole", "ValidatingAdmissionPolicy", "NetworkPolicy"} <= kinds


@pytest.mark.parametrize("path", SET, ids=lambda path: path.stem)
def test_each_value_that_was_set_is_taken_and_says_something_still(render: Render, path: Path) -> None:
    values = yaml.safe_load(path.read_text())

    def made(given: Object) -> list[Object]:
        return render(*(f"{key}={json.dumps(value)}" for key, value in given.items()), kinds=KINDS)

    whole = made(values)
    assert len(values) > 15
    silent = []
    for name in values:
        try:
            silent += [name] if made({other: each for other, each in values.items() if other != name}) == whole else []
        except subprocess.CalledProcessError:
            # Another value needs this one, so it says something.
            continue
    assert silent == []
