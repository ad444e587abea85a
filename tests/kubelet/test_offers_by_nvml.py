"""A device plugin with NVML as other platforms and drivers have it: it offers the GPUs, and pods get their shares."""

import pytest

from simgpu.nvml_profiles import NVML_PROFILES
from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import Pod


@pytest.mark.parametrize("name", [name for name in NVML_PROFILES if name != "jetson"])
async def test_gpus_are_offered_and_handed_out_as_far_as_the_profile_goes(node: Node, name: str) -> None:
    node.simulate(nvml=name)
    await node.start_manager()
    await node.start_plugin()
    await node.kubelet.until(healthy=200)
    pod = Pod("first", {"main": 30})
    await node.kubelet.admit(pod)
    await node.kubelet.start_container(pod, "main")
    assert set(await node.allocations()) == {"first/main"}
    lines = [line for line in node.plugin_log.read_text().splitlines() if "refuses" in line or "Traceback" in line]
    assert len(lines) == len(set(lines))
    assert not [line for line in lines if "Traceback" in line]
    # Of 535's lists of processes the plugin knows nothing: it asks for none.
    assert bool(lines) == (name in ("wsl2", "vgpu", "driver-470")), lines
