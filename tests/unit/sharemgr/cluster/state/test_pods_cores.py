"""The cores and the RAM that a pod asks for."""

from typing import Any

import pytest

from edgeshare.contract.units import peak
from sharemgr.cluster.state.pods import SharePod, parse_pod
from tests.kit.assigner.pod_json import PERCENT, asking


@pytest.mark.parametrize(
    ("sizes", "most"),
    [
        ([], 0),
        ([(5, True), (6, True)], 11),
        ([(9, False), (5, True), (3, True)], 9),
        ([(9, False), (5, True), (5, True)], 10),
        ([(5, True), (9, False), (3, True)], 14),
        ([(5, False), (9, False)], 9),
    ],
)
def test_the_peak_is_what_runs_at_a_time(sizes: list[tuple[int, bool]], most: int) -> None:
    assert peak(sizes) == most


@pytest.mark.parametrize(
    ("spec", "cpu_milli", "ram_mib"),
    [
        ({"containers": [asking("1500m", "1Gi"), asking("2", "512Mi")]}, 3500, 1536),
        ({"containers": [{"name": "c"}]}, 0, 0),
        ({"containers": [asking("1", "2Gi")], "initContainers": [asking("3", "1Gi")]}, 3000, 2048),
        (
            {
                "containers": [asking("1", "1Gi")],
                "initContainers": [asking("1", "1Gi", restartPolicy="Always"), asking("3", "100Mi")],
            },
            4000,
            2048,
        ),
        ({"containers": [asking("1", "1Gi")], "overhead": {"cpu": "250m", "memory": "64Mi"}}, 1250, 1088),
        ({"containers": [asking("1", "1Gi")], "resources": {"requests": {"cpu": "4"}}}, 4000, 1024),
        ({"containers": [asking("1", "1Gi")], "resources": {"requests": {"memory": "1500M"}}}, 1000, 1430),
    ],
)
def test_cores_and_ram_are_counted_as_kube_scheduler_does(spec: dict[str, Any], cpu_milli: int, ram_mib: int) -> None:
    for limits in ({}, {PERCENT: "50"}):
        of_main = spec["containers"][0]
        main = {**of_main, "resources": {**of_main.get("resources", {}), "limits": limits}}
        things = {**spec, "containers": [main, *spec["containers"][1:]]}
        found = parse_pod({"metadata": {"uid": "u", "namespace": "d", "name": "p"}, "spec": things})
        assert found.fault == ""
        assert (found.request.cpu_milli, found.request.ram_mib) == (cpu_milli, ram_mib)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"containers": [asking("many")]}, "container c: cpu is 'many': expected a quantity"),
        (
            {"containers": [{"name": "c", "resources": {"requests": {"cpu": ["1"]}}}]},
            "container c: cpu is \"['1']\": expected a quantity",
        ),
        ({"containers": [asking(memory="-1")]}, "container c: memory is '-1': expected a quantity"),
        ({"containers": [], "overhead": {"cpu": "x"}}, "spec.overhead: cpu is 'x': expected a quantity"),
        ({"containers": [], "resources": {"requests": []}}, "expected an object at requests, found a list"),
    ],
)
def test_cores_that_are_no_quantity_are_the_pods_fault(spec: dict[str, Any], fault: str) -> None:
    found = parse_pod({"metadata": {"uid": "u", "namespace": "d", "name": "p"}, "spec": spec})
    assert found.fault == fault
    assert found.request == SharePod("u", "d", "p").request
