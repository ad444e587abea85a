"""A labeller with NVML as other platforms and drivers have it: it labels what is told, says once what is not, and ends
well."""

import json
from pathlib import Path

import pytest

from labeller.names import GPU_DRIVER
from simgpu.create import CUDA_VERSION, DRIVERS
from simgpu.nvml_profiles import NVML_PROFILES
from simgpu.trees import JETSONS, add_jetson
from tests.kit.labeller.labelling import dry_run, simulated
from tests.kit.labeller.machines import add_gpus, server


@pytest.mark.parametrize("name", NVML_PROFILES)
def test_a_gpu_is_labelled_as_far_as_the_profile_goes(tmp_path: Path, name: str) -> None:
    if name == "jetson":
        add_jetson(tmp_path, JETSONS["agx-orin"])
    else:
        server(tmp_path)
        add_gpus(tmp_path, ["1eb8"], "030200")
    with simulated(gpus=1, model="orin" if name == "jetson" else "t4", nvml=name) as environment:
        done = dry_run(environment, root=str(tmp_path), sources=["nvml", "jetson", "devicetree"])
    labels = json.loads(done.stdout)["labels"]
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(set(lines))
    assert (labels["edge/gpu.count"], labels["edge/gpu.share.units"]) == ("1", "100")
    # WSL2 and drivers before 510 do not tell what the driver keeps.
    assert any("its second version" in line for line in lines) == (name in ("wsl2", "driver-470"))
    profile = NVML_PROFILES[name]
    version = profile.driver_version or DRIVERS[profile.cuda_version or CUDA_VERSION]
    assert labels[GPU_DRIVER] == version
