"""The chart's dashboard as an object of the cluster: what Grafana's sidecar finds, as its page has it.
tests/assigner/test_dashboard.py has its queries answered."""

import json
import re
from pathlib import Path
from typing import Any

from tests.kit.deploy.objects import Render

ROOT = Path(__file__).parents[3]
FILE = ROOT / "deploy/chart/files/dashboard.json"
DASHBOARD = json.loads(FILE.read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
PANELS_MOST = 20
"""More nobody reads."""


def test_the_chart_has_it_where_it_is_told_to_as_grafanas_sidecar_finds_it(render: Render) -> None:
    def dashboards(*values: str) -> list[dict[str, Any]]:
        return [each for each in render(*values) if "grafana_dashboard" in each["metadata"].get("labels", {})]

    assert dashboards() == []
    (found,) = dashboards("monitoring.dashboard=true")
    assert (found["kind"], found["metadata"]["labels"]["grafana_dashboard"]) == ("ConfigMap", "1")
    assert {name: json.loads(text) for name, text in found["data"].items()} == {"edgeshare.json": DASHBOARD}


def test_a_series_says_on_which_node_it_is_with_an_operator_too(render: Render) -> None:
    monitors = [each for each in render("monitoring.podMonitors=true") if each["kind"] == "PodMonitor"]
    rules = [rule for each in monitors for end in each["spec"]["podMetricsEndpoints"] for rule in end["relabelings"]]
    assert rules
    assert all(rule == {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"} for rule in rules)


def test_each_panel_has_a_place_of_its_own_and_a_line_on_the_page() -> None:
    page = (ROOT / "docs/run/monitoring.md").read_text()
    assert len(PANELS) <= PANELS_MOST
    assert [panel["title"] for panel in PANELS if f"| *{panel['title']}* |" not in page] == []
    assert all(panel["description"] and panel["targets"] for panel in PANELS)
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_its_variables_are_those_that_its_queries_have() -> None:
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(PANELS)))
    assert variables == {"datasource", "node", "namespace"}
    assert {name for name in used if not name.startswith("__")} == variables
