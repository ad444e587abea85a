"""What the driver of a node tells, and refuses, is among the findings: of the simulated one. So is who else has its
GPUs."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from simgpu.create import create, destroy
from simgpu.environment import variables
from simgpu.machine import Machine
from tests.kit.kubelet.scripted_kubelet import ScriptedKubelet
from tests.kit.processes import forked

END_S = 60


def found(root: Path, subject: str) -> list[tuple[str, str]]:
    """State and text of all that is said of something."""
    command = ["doctor", "--root", str(root), "--kubelet-dir", "/kubelet", "--json"]
    done = forked.run(command, END_S, {**os.environ, **variables(root / "machine")})
    assert done.stderr == ""
    said = [(each["state"], each["text"]) for each in json.loads(done.stdout) if each["subject"] == subject]
    assert done.returncode == int("wrong" in done.stdout)
    return said


@pytest.fixture
async def kubelet() -> AsyncIterator[ScriptedKubelet]:
    """That of a root with two simulated GPUs; its path is short, since sockets are in it."""
    with TemporaryDirectory(dir="/dev/shm", prefix="es-doctor-") as name:
        root = Path(name)
        create(root / "machine", gpus=2, memory_mib=1024)
        kubelet = ScriptedKubelet(root / "kubelet")
        await kubelet.start()
        yield kubelet
        await kubelet.stop()
        destroy(root / "machine")


@pytest.mark.parametrize("gpus", [1, 2])
def test_gpus_are_counted_by_model(tmp_path: Path, gpus: int) -> None:
    create(tmp_path / "machine", gpus=gpus, memory_mib=1024)
    model = Machine(tmp_path / "machine").gpus()[0].name
    assert found(tmp_path, "devices") == [("fine", f"{gpus} x {model} (gpu)")]
    assert found(tmp_path, "driver") == []


def test_what_a_virtual_gpus_driver_refuses_is_a_note(tmp_path: Path) -> None:
    create(tmp_path / "machine", gpus=1, memory_mib=1024, nvml="vgpu")
    refused = found(tmp_path, "driver")
    assert refused
    assert {state for state, _ in refused} == {"note"}
    assert len(found(tmp_path, "devices")) == 1


def test_where_a_card_has_no_driver_that_is_wrong(tmp_path: Path) -> None:
    for name, text in (("vendor", "0x10de\n"), ("class", "0x030200\n")):
        path = tmp_path / "sys/bus/pci/devices/0000:01:00.0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = forked.run(["doctor", "--root", str(tmp_path), "--json"], END_S)
    (trouble,) = (each for each in json.loads(done.stdout) if each["subject"] == "devices")
    assert (done.returncode, trouble["state"]) == (1, "wrong")
    assert trouble["text"].startswith("no NVIDIA driver answers here: ")
    assert "install the driver" in trouble["text"]


async def test_a_gpu_that_another_plugin_hands_out_is_told_with_the_others_resource(kubelet: ScriptedKubelet) -> None:
    root = kubelet.folder.parents[1]
    uuid = Machine(root / "machine").gpus()[1].uuid
    kubelet.others = {"example.com/nic": ["0"]}
    assert await asyncio.to_thread(found, root, "plugins") == []
    kubelet.others["nvidia.com/gpu.shared"] = [f"{uuid}::0", f"{uuid}::1"]
    ((state, text),) = await asyncio.to_thread(found, root, "plugins")
    assert state == "note"
    assert text.startswith(f"GPU {uuid} is not shared: nvidia.com/gpu.shared on this node has it too; leave it out")
    kubelet.others = {"nvidia.com/gpu": [gpu.uuid for gpu in Machine(root / "machine").gpus()]}
    assert len(await asyncio.to_thread(found, root, "plugins")) == 2


async def test_a_kubelet_that_does_not_tell_of_other_plugins_is_a_note(kubelet: ScriptedKubelet) -> None:
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), kubelet.folder / "silent")
    kubelet.resources_socket.unlink()
    (kubelet.folder / "silent").rename(kubelet.resources_socket)
    async with server:
        ((state, text),) = await asyncio.to_thread(found, kubelet.folder.parents[1], "plugins")
    assert state == "note"
    assert text.startswith("not known whether another device plugin has these GPUs too: the kubelet's PodResources")
