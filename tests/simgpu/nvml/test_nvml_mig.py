"""nvidia-ml-py, unchanged, on the simulated library: GPUs that are divided."""

from collections.abc import Callable

import pytest

from edgeshare.contract.errors import InvalidRequest
from tests.kit.machine.nvml_script import HEAD
from tests.kit.machine.simulated import Simulated


def test_mig_devices_have_names_ids_and_a_gpu(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=2, model=["a100", "a100"], memory_mib=None, mig={1: ["1g.5gb", "2g.10gb"]})
    script = """
whole, divided = nv.nvmlDeviceGetHandleByIndex(0), nv.nvmlDeviceGetHandleByIndex(1)
parts = [nv.nvmlDeviceGetMigDeviceHandleByIndex(divided, place) for place in range(2)]
result({
    "modes": [nv.nvmlDeviceGetMigMode(gpu)[0] for gpu in (whole, divided)],
    "most": [nv.nvmlDeviceGetMaxMigDeviceCount(gpu) for gpu in (whole, divided)],
    "beyond": [failure(nv.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 2) for gpu in (whole, divided)],
    "names": [nv.nvmlDeviceGetName(part) for part in parts],
    "is_part": [bool(nv.nvmlDeviceIsMigDeviceHandle(each)) for each in (divided, *parts)],
    "instances": [[nv.nvmlDeviceGetGpuInstanceId(part), nv.nvmlDeviceGetComputeInstanceId(part)] for part in parts],
    "no_instance": failure(nv.nvmlDeviceGetGpuInstanceId, divided),
    "parents": [nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part)) for part in parts],
    "by_uuid": [nv.nvmlDeviceGetName(nv.nvmlDeviceGetHandleByUUID(nv.nvmlDeviceGetUUID(part))) for part in parts],
    "memory": [nv.nvmlDeviceGetMemoryInfo(part).total >> 20 for part in parts],
})
"""
    names = ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-SXM4-40GB MIG 2g.10gb"]
    assert simulated.python(HEAD + script).result() == {
        "modes": [0, 1],
        "most": [0, 7],
        "beyond": [3, 6],
        "names": names,
        "is_part": [False, True, True],
        "instances": [[1, 0], [2, 0]],
        "no_instance": 3,
        "parents": [simulated.machine.gpus()[1].uuid] * 2,
        "by_uuid": names,
        "memory": [4864, 9984],
    }


def test_a_mig_device_tells_how_much_of_its_gpu_it_has(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, model="h100", mig={0: ["3g.40gb", "1g.10gb+me"]})
    script = """
gpu = nv.nvmlDeviceGetHandleByIndex(0)
told = [nv.nvmlDeviceGetAttributes_v2(nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu, place)) for place in range(2)]
result([[getattr(each, name) for name, _ in each._fields_] for each in told]
       + [failure(nv.nvmlDeviceGetAttributes_v2, gpu)])
"""
    # multiprocessors, engines (copy, decoders, encoders, JPEG, OFA), slices (GPU, compute), MiB
    expected = [[60, 3, 3, 0, 3, 0, 3, 3, 40448], [16, 1, 1, 0, 1, 1, 1, 1, 9984], 3]
    assert simulated.python(HEAD + script).result() == expected


def test_a_gpu_is_divided_as_its_model_can_be(simulate: Callable[..., Simulated]) -> None:
    with pytest.raises(InvalidRequest, match="an NVIDIA H100 80GB HBM3 cannot be divided into 1g"):
        simulate(gpus=1, model="h100", mig={0: ["1g.5gb"]})
