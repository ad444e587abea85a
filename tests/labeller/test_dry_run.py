"""``edgeshare labeller --dry-run``, as a user calls it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from edgeshare.cli.labeller import command
from simgpu.trees import write
from tests.kit.labeller.machines import MACHINES

SECONDS_MAX = 1
"""Of a processor of this machine; a Jetson's are several times slower, and it is to be done there in 2 s. It takes some
0.25."""

MEMORY_MIB_MAX = 60

RUNS = 4
"""Of which one has to be quick: beside others a program takes more of a processor's time for the same work."""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """No NVML: this machine's own driver has no part in a recorded tree."""
    path = tmp_path / "labeller.yaml"
    path.write_text("sources: [jetson, devicetree, coral, buses]\n")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def dry(config: Path, root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["--config", str(config), "--root", str(root), "--dry-run", *arguments])


def test_the_jetson_nano_of_the_devicetree_labeller_has_its_labels(config: Path, root: Path) -> None:
    MACHINES["nano-first"].build(root)
    result = dry(config, root, "--json", "-n", "gpu")
    assert result.exit_code == 0
    labels = json.loads(result.stdout)["labels"]
    assert {name: count for name, count in labels.items() if name.startswith("beta.devicetree.org/")} == {
        "beta.devicetree.org/nvidia-jetson-nano": "1",
        "beta.devicetree.org/nvidia-tegra210": "1",
        "beta.devicetree.org/nvidia-tegra210-gm20b": "1",
        "beta.devicetree.org/nvidia-gm20b": "1",
    }


def test_named_nodes_are_in_place_of_processors_and_gpus(config: Path, root: Path) -> None:
    MACHINES["nano"].build(root)
    lines = dry(config, root, "-n", "pwm-fan", "-n", "gpu").stdout.splitlines()
    assert "beta.devicetree.org/pwm-fan=1" in lines
    assert "beta.devicetree.org/nvidia-gm20b=1" in lines
    assert "beta.devicetree.org/arm-cortex-a57=4" not in lines
    assert "beta.devicetree.org/arm-cortex-a57=4" in dry(config, root).stdout.splitlines()


def test_lines_json_and_yaml_say_the_same(config: Path, root: Path) -> None:
    MACHINES["orin-nano"].build(root)
    labels = json.loads(dry(config, root, "--json").stdout)["labels"]
    assert labels["gpu.model"] == "Jetson-Orin-Nano"
    assert yaml.safe_load(dry(config, root, "--yaml").stdout) == {"labels": labels}
    assert dry(config, root).stdout.splitlines() == [f"{name}={value}" for name, value in labels.items()]


def test_a_machine_with_nothing_is_a_normal_one(config: Path, root: Path) -> None:
    result = dry(config, root, "--json")
    assert (result.exit_code, json.loads(result.stdout), result.stderr) == (0, {"labels": {}}, "")


def test_what_cannot_be_read_is_said_and_the_rest_is_told(config: Path, root: Path) -> None:
    MACHINES["raspberry-pi-coral"].build(root)
    write(root / "sys/firmware/devicetree/base/compatible", "raspberrypi,4-mod")
    result = dry(config, root, "--json")
    assert result.exit_code == 1
    why = "/sys/firmware/devicetree/base/compatible does not end with a zero: it is cut off"
    assert result.stderr == f"edgeshare: jetson: {why}\nedgeshare: devicetree: {why}\n"
    labels = json.loads(result.stdout)["labels"]
    assert labels["edge/tpu.usb.count"] == "1"
    # Of what this machine is, nothing is known.
    assert not any(name.startswith(("beta.devicetree.org/", "gpu.")) for name in labels)


@pytest.mark.parametrize(("key", "gone"), [("reactor_names", "gpu."), ("devicetree_names", "beta.devicetree.org/")])
def test_a_switch_leaves_others_names_out(config: Path, root: Path, key: str, gone: str) -> None:
    MACHINES["nano"].build(root)
    everything = json.loads(dry(config, root, "--json").stdout)["labels"]
    config.write_text(f"{config.read_text()}{key}: false\n")
    labels = json.loads(dry(config, root, "--json").stdout)["labels"]
    assert labels == {name: value for name, value in everything.items() if not name.startswith(gone)}
    assert labels != everything


def test_a_switch_gives_the_revision_alone(config: Path, root: Path) -> None:
    MACHINES["nano"].build(root)
    config.write_text(f"{config.read_text()}legacy_l4t: true\n")
    labels = json.loads(dry(config, root, "--json").stdout)["labels"]
    assert (labels["gpu.driver"], labels["edge/jetson.release"]) == ("4.3", "32.4.3")


def test_it_takes_little_time_and_memory(config: Path, root: Path) -> None:
    MACHINES["agx-orin"].build(root)
    for number in range(4000):
        write(root / f"sys/firmware/devicetree/base/bus@{number % 20}/device@{number}/compatible", "a,b\0")
    # Its own figures, and no other child's: a process of its own waits for it.
    program = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss // 1024)"
    )
    asked = ["-m", "edgeshare.cli", "labeller", "--config", str(config), "--root", str(root), "--dry-run"]
    took_s: list[float] = []
    while not took_s or took_s[-1] > SECONDS_MAX:
        assert len(took_s) < RUNS, took_s
        done = subprocess.run(
            [sys.executable, "-c", program, sys.executable, *asked], capture_output=True, text=True, check=True
        )
        *labels, figures = done.stdout.splitlines()
        seconds, memory_mib = map(float, figures.split())
        took_s.append(seconds)
        assert "gpu.driver=35.4.1" in labels
        assert memory_mib <= MEMORY_MIB_MAX
