"""The source that asks NVIDIA's driver, with a simulated one in its place."""

import json
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simgpu.machine import Machine
from simgpu.trees import JETSONS, add_jetson
from tests.kit.labeller.labelling import PATIENCE_S, dry_run, found_with_driver, simulated
from tests.kit.labeller.machines import MACHINES, PRODUCT, add_gpus, server
from tests.kit.processes import forked

LISTING = Path(__file__).parents[1] / "kit/labeller/listing.py"

LOOKS = """
import dataclasses, json, sys
from pathlib import Path
from labeller.collect import Collector
from labeller.config import Config
from labeller.labels import labels_of
config = Config(root=Path(sys.argv[1]), sources=("nvml",))
collector = Collector(config)
for line in sys.stdin:
    found = collector.look()
    labels = labels_of(found.facts, config.switches())
    print(json.dumps([labels, found.troubles, sorted(found.unread)]), flush=True)
"""
"""Looks once for each line that it gets."""


class Looker:
    """A labeller that looks when it is told."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", LOOKS, root],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def look(self) -> tuple[dict[str, str], dict[str, str], list[str]]:
        """Labels, troubles, sources that were never read."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("look", file=self._process.stdin, flush=True)
        labels, troubles, unread = json.loads(self._process.stdout.readline())
        return labels, troubles, unread

    def end(self) -> None:
        self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0


@pytest.fixture
def eight(tmp_path: Path) -> Iterator[tuple[Looker, Machine]]:
    """A server of eight GPUs, and who looks at it."""
    server(tmp_path)
    add_gpus(tmp_path, ["1eb8"] * 8, "030200")
    with simulated(gpus=8) as environment:
        looker = Looker(tmp_path, environment)
        yield looker, Machine(Path(environment["SIMGPU_MACHINE"]))
        looker.end()


def test_a_gpu_that_is_lost_changes_no_label(eight: tuple[Looker, Machine]) -> None:
    looker, machine = eight
    before, troubles, unread = looker.look()
    assert (before["edge/gpu.count"], before["edge/gpu.share.units"], troubles, unread) == ("8", "800", {}, [])
    machine.inject_lost(3)
    for _ in range(2):
        labels, troubles, unread = looker.look()
        assert (labels, unread) == (before, [])
        assert troubles == {
            "nvml": "GPU 3 cannot be read: GPU is lost (nvmlDeviceGetHandleByIndex); nvidia-smi tells more"
        }
    machine.reset(3)
    assert looker.look() == (before, {}, [])


def test_with_a_gpu_that_was_never_read_the_others_are_told(eight: tuple[Looker, Machine]) -> None:
    looker, machine = eight
    machine.inject_lost(3)
    machine.inject_lost(5)
    labels, troubles, unread = looker.look()
    # Who writes them takes no label away then, and changes none.
    assert (labels["edge/gpu.count.Tesla-T4"], unread) == ("6", ["nvml"])
    assert troubles["nvml"].count("cannot be read") == 2
    machine.reset(3)
    assert looker.look()[0]["edge/gpu.count.Tesla-T4"] == "7"
    machine.reset(5)
    labels, troubles, unread = looker.look()
    assert (labels["edge/gpu.count.Tesla-T4"], troubles, unread) == ("8", {}, [])


def test_a_driver_that_goes_away_changes_no_label(eight: tuple[Looker, Machine]) -> None:
    looker, machine = eight
    before, _, _ = looker.look()
    for gpu in range(8):
        machine.inject_lost(gpu)
    labels, troubles, unread = looker.look()
    assert (labels, unread) == (before, [])
    assert troubles["nvml"].startswith("GPU 0 cannot be read")


def test_no_driver_and_no_gpu_is_a_normal_machine(tmp_path: Path) -> None:
    server(tmp_path)
    environment = {**os.environ, "LD_LIBRARY_PATH": "/nonexistent"}
    assert found_with_driver(environment, root=str(tmp_path), sources=["nvml"]) == {}


def test_a_drivers_library_without_a_gpu_is_normal_too(tmp_path: Path) -> None:
    server(tmp_path)
    with simulated() as environment:
        assert found_with_driver(environment | {"SIMGPU_MACHINE": "/nonexistent"}, root=str(tmp_path)) == {}
        none = found_with_driver(environment | {"NVIDIA_VISIBLE_DEVICES": "none"}, root=str(tmp_path))
        assert none == {}


def test_a_jetson_needs_no_driver_that_answers(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["orin-nano"])
    with simulated() as environment:
        labels = found_with_driver(environment | {"SIMGPU_MACHINE": "/nonexistent"}, root=str(tmp_path))
    assert labels["edge/gpu.product"] == "NVIDIA-Jetson-Orin-Nano"


@pytest.mark.parametrize(
    ("product", "machine"),
    [("PowerEdge R740\n", "PowerEdge-R740"), ("\udcff\udcfe X\n", "X"), ("\n", None), ("", None)],
)
def test_a_machine_is_told_as_its_firmware_calls_it(tmp_path: Path, product: str, machine: str | None) -> None:
    server(tmp_path)
    add_gpus(tmp_path, ["1eb8"], "030200")
    (tmp_path / PRODUCT).parent.mkdir(parents=True)
    (tmp_path / PRODUCT).write_bytes(os.fsencode(product))
    with simulated(gpus=1) as environment:
        labels = found_with_driver(environment, root=str(tmp_path), sources=["nvml"])
    assert labels.get("edge/gpu.machine") == machine


def test_a_driver_that_does_not_answer_for_its_gpu_is_a_trouble(tmp_path: Path) -> None:
    server(tmp_path)
    add_gpus(tmp_path, ["1eb8"], "030200")
    with simulated() as environment:
        done = dry_run(environment | {"SIMGPU_MACHINE": "/nonexistent"}, root=str(tmp_path), sources=["nvml"])
    assert (done.returncode, json.loads(done.stdout)) == (1, {"labels": {}})
    assert "nvml: no NVIDIA driver answers here: the kernel module is not loaded; load it" in done.stderr


def test_a_machine_that_does_not_show_its_buses_is_not_taken_for_one_without_gpus(tmp_path: Path) -> None:
    with simulated() as environment:
        done = dry_run(environment | {"SIMGPU_MACHINE": "/nonexistent"}, root=str(tmp_path), sources=["nvml"])
    assert (done.returncode, "the kernel module is not loaded" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        (b"\xff\xfe\x80 T4", "T4"),
        (b"Te\tl/\nT4", "Te-l-T4"),
        (b"\xf0\x9f\x92\xa5\xf0\x9f\x92\xa5", None),
        (b"-_.. _--", None),
    ],
)
def test_a_name_that_is_no_text_makes_a_valid_label_or_none(tmp_path: Path, name: bytes, spelled: str | None) -> None:
    add_gpus(tmp_path, ["1eb8"], "030200")
    with simulated(gpus=1) as environment:
        rename(Path(environment["SIMGPU_MACHINE"]), name)
        labels = found_with_driver(environment, root=str(tmp_path), sources=["nvml"])
    assert labels["edge/gpu.count"] == "1"
    assert labels.get("edge/gpu.product") == spelled
    assert [name for name in labels if name.startswith("edge/gpu.count.")] == (
        [f"edge/gpu.count.{spelled}"] if spelled else []
    )


def rename(machine: Path, name: bytes) -> None:
    """Gives the Tesla T4 another name, of no more bytes."""
    with (machine / "machine").open("r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        at = shared.find(b"Tesla T4")
        assert at >= 0
        shared[at : at + 8] = name.ljust(8, b"\0")


@pytest.mark.parametrize("name", [name for name, machine in MACHINES.items() if name != "nano-first"])
def test_a_share_is_what_the_inventory_lists(tmp_path: Path, name: str) -> None:
    machine = MACHINES[name]
    machine.build(tmp_path)
    plan: dict[str, Any] = dict(machine.gpus) or {"gpus": 1}
    with simulated(**plan) as environment:
        if not machine.gpus:
            environment |= {"NVIDIA_VISIBLE_DEVICES": "none"}
        labels = found_with_driver(environment, root=str(tmp_path))
        done = forked.run([str(tmp_path)], PATIENCE_S, environment, [str(LISTING)])
    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads(done.stdout)
    assert int(labels.get("edge/gpu.share.units", 0)) == 100 * listed["gpus"]
    assert int(labels.get("edge/gpu.share.memory-mib", 0)) == listed["memory_mib"]
    assert int(labels.get("edge/tpu.share.units", 0)) == 100 * listed["edgetpus"]
    assert ("edge/gpu.share" in labels, "edge/tpu.share" in labels) == (listed["gpus"] > 0, listed["edgetpus"] > 0)
