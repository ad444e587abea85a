"""The chart's alerts, by promtool: each fires for what it is for and for nothing less, of metrics that there are."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.core import Metric

from deviceplugin import metrics as plugin
from deviceplugin.counters import Counters
from edgeshare.v1.status_pb2 import NodeStatus
from sharemgr.cluster.config import Config
from sharemgr.cluster.extender.metrics import certificate_ends
from sharemgr.cluster.service import Service
from sharemgr.node import metrics as manager
from tests.kit.deploy.objects import Render
from tests.kit.processes.errors import NodeError
from tests.kit.programs.packages import unpacked

HERE = Path(__file__).parent
RULES = HERE.parents[2] / "deploy/chart/files/alerts.yaml"
CASES: list[dict[str, Any]] = yaml.safe_load((HERE / "alert_cases.yaml").read_text())
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Debian's, unpacked."""
    try:
        return unpacked("prometheus") / "usr/bin/promtool"
    except NodeError as error:
        pytest.skip(f"Debian's prometheus cannot be had: {error}")


@pytest.mark.parametrize("fires", [True, False], ids=["fires", "is quiet"])
@pytest.mark.parametrize("case", CASES, ids=[f"{place}-{case['alert']}" for place, case in enumerate(CASES)])
def test_it_fires_for_what_it_is_for_and_for_nothing_less(
    promtool: Path, tmp_path: Path, case: dict[str, Any], fires: bool
) -> None:
    series = case["fires" if fires else "quiet"]
    told = {
        "exp_labels": case["labels"],
        "exp_annotations": {"summary": case["summary"], "description": case["description"]},
    }
    checked = {"eval_time": "30m", "alertname": case["alert"], "exp_alerts": [told] if fires else []}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": str(values)} for name, values in series.items()],
        "alert_rule_test": [checked],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_case_and_a_line_on_its_page() -> None:
    names = {alert["alert"] for alert in alerts()}
    assert names == {case["alert"] for case in CASES}
    page = (RULES.parents[3] / "docs/run/monitoring.md").read_text()
    assert {name for name in names if f"| `{name}` |" not in page} == set()


def test_they_and_the_dashboard_are_of_metrics_that_are_told() -> None:
    figures = plugin.Figures([], [], False, {}, 0, "", False, Counters(), [])
    told = {
        *names(manager.families(NodeStatus())),
        *names(plugin.families(figures)),
        *names([certificate_ends({})]),
        # Of whom leads alone.
        *names(Service(Config()).families()),
        "edgeshare_assigner_gpus_overcommitted",
        "edgeshare_assigner_tpus_overcommitted",
        "edgeshare_assigner_pods_waiting",
    }
    dashboard = (RULES.parent / "dashboard.json").read_text()
    expressions = [alert["expr"] for alert in alerts()] + re.findall(r'"(?:expr|query)": "(.*)"', dashboard)
    asked = {name for expression in expressions for name in re.findall(r"edgeshare_\w+", expression)}
    assert asked - told == set()


def names(families: Iterable[Metric]) -> set[str]:
    """Of the samples of these."""
    return {f"{each.name}{suffix}" for each in families for suffix in SUFFIXES.get(each.type, ("",))}


def test_the_chart_has_them_where_it_is_told_to(render: Render) -> None:
    def rules(*values: str) -> list[dict[str, Any]]:
        return [each for each in render(*values) if each["kind"] == "PrometheusRule"]

    assert rules() == []
    (rule,) = rules("monitoring.rules=true", 'monitoring.labels={"release": "stack"}')
    assert rule["spec"]["groups"][0]["rules"] == alerts()
    assert rule["metadata"]["labels"]["release"] == "stack"


@pytest.mark.parametrize(
    ("values", "monitored"),
    [
        ((), {"edgeshare": ["metrics", "plugin-metrics"], "edgeshare-assigner": ["metrics"]}),
        (("shareManager.metricsPort=0", "scheduler.enabled=false"), {"edgeshare": ["plugin-metrics"]}),
        (("shareManager.metricsPort=0", "devicePlugin.metricsPort=0", "scheduler.enabled=false"), {}),
        (
            ("labeller.metricsPort=9467",),
            {
                "edgeshare": ["metrics", "plugin-metrics"],
                "edgeshare-labeller": ["metrics"],
                "edgeshare-assigner": ["metrics"],
            },
        ),
        (
            ("labeller.metricsPort=9467", "labeller.enabled=false", "scheduler.enabled=false"),
            {"edgeshare": ["metrics", "plugin-metrics"]},
        ),
    ],
)
def test_each_pod_with_a_metrics_port_is_monitored_by_its_name(
    render: Render, values: tuple[str, ...], monitored: dict[str, list[str]]
) -> None:
    objects = render("monitoring.podMonitors=true", *values)
    monitors = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "PodMonitor"}
    endpoints = {name: monitor["podMetricsEndpoints"] for name, monitor in monitors.items()}
    assert {name: [each["port"] for each in found] for name, found in endpoints.items()} == monitored
    assert all(each["honorLabels"] for found in endpoints.values() for each in found)
    for monitor in monitors.values():
        labels = monitor["selector"]["matchLabels"].items()
        templates = [each["spec"]["template"] for each in objects if "template" in each.get("spec", {})]
        (selected,) = (each["spec"] for each in templates if labels <= each["metadata"]["labels"].items())
        ports = {port["name"] for each in selected["containers"] for port in each.get("ports", [])}
        assert {each["port"] for each in monitor["podMetricsEndpoints"]} <= ports


def test_no_monitor_is_made_unless_it_is_asked_for(render: Render) -> None:
    assert not [each for each in render() if each["kind"] == "PodMonitor"]
