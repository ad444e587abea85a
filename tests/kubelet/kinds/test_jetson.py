"""A node that is a Jetson: one GPU whose memory is the processors' too, and no NVML, or one that does not list it."""

from pathlib import Path

import pytest

from simgpu.trees import JETSONS, add_jetson
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod

SERIAL = "1421919056789"
BOARD = JETSONS["nano"]


@pytest.mark.parametrize("has_nvml", [False, True])
@pytest.mark.parametrize(("devices", "nodes"), [("device-nodes", BOARD.nodes), ("envvar", ())])
async def test_pods_share_it_and_get_its_device_nodes_or_the_runtimes_own_mode_alone(
    node: Node, monkeypatch: pytest.MonkeyPatch, devices: str, nodes: tuple[str, ...], has_nvml: bool
) -> None:
    root = node.root / "host"
    add_jetson(root, BOARD, SERIAL)
    if has_nvml:
        node.simulate(nvml="jetson", uuids=UUIDS[:1], gpus=1)
    else:
        monkeypatch.setenv("LD_LIBRARY_PATH", "")
    inventory = {"root": str(root), "sources": ["nvml", "jetson"], "jetson_reserve_mib": 964}
    await node.start_manager(inventory=inventory)
    await node.start_plugin(driver=has_nvml, inventory=inventory, injection={"devices": devices})
    await node.kubelet.until(healthy=100)
    answers = []
    for name, units in (("first", 30), ("second", 70)):
        pod = Pod(name, {"main": units})
        await node.kubelet.admit(pod)
        answers.append(await node.kubelet.start_container(pod, "main"))
    allocations = await node.allocations()
    assert {name: (list(each.device_ids), each.memory_mib) for name, each in allocations.items()} == {
        "first/main": ([SERIAL], 900),
        "second/main": ([SERIAL], 2100),
    }
    for answer in answers:
        assert {Path(each.container_path).name for each in answer.devices} == {Path(each).name for each in nodes}
        assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == "all"
    with pytest.raises(AdmissionError):
        await node.kubelet.admit(Pod("third", {"main": 10}))
