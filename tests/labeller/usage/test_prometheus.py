"""A real Prometheus, Debian's, reads what the tools tell of a machine's accelerators."""

from pathlib import Path

import pytest

from simgpu.machine import Machine as Simulated
from tests.kit.labeller.watched import LINE, SERIAL, Machine
from tests.kit.pages.scraping import Prometheus, complaints, programs_of_prometheus

UTILIZATION = "edgeshare_accelerator_utilization_ratio"


@pytest.fixture(scope="module")
def programs() -> Path:
    return programs_of_prometheus()


def test_it_has_no_complaint_reads_both_tools_and_forgets_what_is_old(programs: Path, machine: Machine) -> None:
    machine.be_jetson("orin-nano")
    (gpu,) = Simulated(machine.simulate(gpus=1)).gpus()
    tegrastats = machine.tegrastats()
    # A line is news for 15 s: for the questions that are asked about it, also on a busy machine.
    watcher = machine.watch(interval_s=5)
    prometheus = Prometheus(programs / "prometheus", machine.root, {watcher.address: {"node": "edge-1"}})
    try:
        prometheus.ready()
        # Its first scrape may come when a line is news no more.
        prometheus.until(UTILIZATION, "device", {gpu.uuid: 0})
        tegrastats.started().print(LINE)
        prometheus.until(UTILIZATION, "device", {SERIAL: 0.37, gpu.uuid: 0})
        prometheus.until("edgeshare_accelerator_power_watts", "model", {"NVIDIA Jetson Orin Nano": 1.28, "Tesla T4": 7})
        assert complaints(programs, watcher.get()) == ""
        kinds = {name: about[0]["type"] for name, about in prometheus.api("metadata").items()}
        # It hangs.
        prometheus.until(UTILIZATION, "device", {gpu.uuid: 0})
        prometheus.until("edgeshare_accelerator_tool_up", "tool", {"tegrastats": 0, "nvml": 1})
    finally:
        assert prometheus.end() == 0
    assert kinds[UTILIZATION] == "gauge"
    assert kinds["edgeshare_accelerator_tool_skipped_lines_total"] == "counter"
