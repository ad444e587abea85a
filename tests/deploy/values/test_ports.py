"""Ports of one pod, which two of its containers cannot both have."""

import subprocess

import pytest

from tests.kit.deploy.objects import Render


def test_two_parts_of_one_pod_with_one_port_are_refused_in_a_line_that_names_both(render: Render) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render("shareManager.metricsPort=9465")
    (said,) = (line for line in refused.value.stderr.splitlines() if "metricsPort" in line)
    both = "shareManager.metricsPort and devicePlugin.metricsPort are both 9465, and are ports of one pod"
    assert f"{both}: name another for one of them" in said


@pytest.mark.parametrize(
    "values",
    [
        # Neither has one.
        ("shareManager.metricsPort=0", "devicePlugin.metricsPort=0"),
        # Another pod has it, with an address of its own.
        ("labeller.metricsPort=9465",),
        ("assigner.enabled=true", "assigner.tls.enabled=false", "assigner.metricsPort=9465"),
    ],
)
def test_ports_of_several_pods_may_be_one(render: Render, values: tuple[str, ...]) -> None:
    assert render(*values)
