"""A third kind of accelerator is a few lines: an imaginary one, added to a copy of the tree, is shared by the real
plugin and the real manager."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import Pod
from tests.kit.kubelet.scripted_kubelet import ScriptedKubelet

ROOT = Path(__file__).parents[3]
PARTS = ("cuda_hook", "deviceplugin", "edgeshare", "labeller", "sharemgr", "simgpu")
NPU_PERCENT = "edge/npu-percent"

RECORD = """NPU = AcceleratorKind(
    accelerator=Accelerator.NPU,
    word="NPU",
    prefix="npu",
    resource="edge/npu-percent",
    hook_dir="/run/edgeshare-npu",
    hook_dir_variable="EDGESHARE_NPU_DIR",
    visible_variable="",
    wire_number=3,
    is_exclusive=False,
    has_memory=False,
    is_chosen_by_wish=False,
)

KINDS = {kind.accelerator: kind for kind in (GPU, EDGETPU, NPU)}
"""

ADDED = {
    "edgeshare/contract/devices.py": ('    EDGETPU = "edgetpu"\n', '    EDGETPU = "edgetpu"\n    NPU = "npu"\n'),
    "edgeshare/contract/accelerator_kind.py": (
        "KINDS = {kind.accelerator: kind for kind in (GPU, EDGETPU)}\n",
        RECORD,
    ),
    "cuda_hook/wire.py": (
        "    EDGETPU = lib.ES_ACCELERATOR_EDGETPU\n",
        "    EDGETPU = lib.ES_ACCELERATOR_EDGETPU\n    NPU = 3\n",
    ),
}
"""What a kind takes whose devices an administrator lists: its name, its record, its number on the wire."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """This tree by links, but for the files to which the kind was added."""
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part, copy_function=os.symlink, ignore=shutil.ignore_patterns("*.pyc"))
    for group in ROOT.glob("*__mypyc*.so"):
        (tmp_path / group.name).symlink_to(group)
    for name, (before, after) in ADDED.items():
        text = (ROOT / name).read_text()
        assert text.count(before) == 1, name
        (tmp_path / name).unlink()
        (tmp_path / name).write_text(text.replace(before, after))
    return tmp_path


PLACED = """
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.state.accelerators import parse_node
from sharemgr.cluster.state.pods import parse_pod

def device(name, kind):
    return {"id": name, "kind": kind, "model": "Imaginary", "memoryMiB": 0, "healthy": True}

assigner = Assigner(POLICIES["usable"])
devices = [device("g", "gpu"), device("npu-0", "npu"), device("npu-1", "npu")]
assigner.nodes_listed([parse_node({"metadata": {"name": "n"}, "status": {"devices": devices}})])
for number in range(3):
    limits = {"edge/gpu-percent": "10", "edge/npu-percent": "60"}
    main = {"name": "main", "resources": {"limits": limits}}
    pod = parse_pod({"metadata": {"uid": f"u{number}", "name": "p"}, "spec": {"containers": [main]}})
    found = assigner.filter(pod, ["n"])
    if found.nodes:
        placed, holding = assigner.decide(pod, "n")
        assigner.books.ledger.assume(holding)
        print(placed.assignment)
    else:
        print(found.failed["n"])
"""


def test_an_imaginary_kind_is_placed_per_device_by_the_same_files(tree: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-c", PLACED], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *placed, refused = done.stdout.splitlines()
    assert [json.loads(each)["main"]["edge/gpu-percent"] for each in placed] == [["g"], ["g"]]
    assert sorted(json.loads(each)["main"]["edge/npu-percent"][0] for each in placed) == ["npu-0", "npu-1"]
    assert refused.endswith("npu 0: 40 of 100 units free, npu 1: 40 of 100 units free")


async def test_an_imaginary_kind_is_shared_by_three_files(
    node: Node, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tree))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # not the tree that the tests are run in
    (node.root / "dev").mkdir()
    (node.root / "dev/npu0").touch()
    npu = {"id": "npu-0", "model": "Imaginary", "accelerator": "npu", "paths": ["/dev/npu0"]}
    inventory = {"sources": ["nvml"], "declared": [npu], "root": str(node.root)}
    kubelet = node.kubelet.beside[NPU_PERCENT] = ScriptedKubelet(node.root / "kubelet", NPU_PERCENT)
    await node.start_manager(inventory=inventory)
    await node.start_plugin(inventory=inventory)
    await kubelet.until(healthy=100)
    await node.kubelet.until(healthy=200)

    pod = Pod("listener", {"main": 30})
    # The kubelet of the GPUs lists the pods of this node, and what they have of others.
    await node.kubelet.admit(replace(pod, containers={"main": 0}))
    await kubelet.admit(pod)
    answer = await kubelet.start_container(pod, "main")
    (allocation,) = await node.allocations_of("listener")
    assert (list(allocation.device_ids), allocation.request_percent) == (["npu-0"], 30)
    assert allocation.id.startswith("npu-")
    assert [device.container_path for device in answer.devices] == ["/dev/npu0"]
    assert "/run/edgeshare-npu" in {mount.container_path for mount in answer.mounts}

    for each in (node.kubelet, kubelet):
        each.end(pod)
    await node.until_allocations_are()
