from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from deviceplugin.inject.response import Injected, answer, preload_text
from deviceplugin.injection_config import Injection
from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.errors import InvalidRequest

FILES = Injected(
    Path("/state/hook/1f/libedgeshare_cuda.so"),
    "1f",
    Path("/state/deviceplugin/gpu-1/ld.so.preload"),
    Path("/run/c/gpu-1"),
)
GPU = Device("GPU-a", 0, "Simulated", 8192, paths=("/dev/nvidia0", "/dev/nvidiactl"))
OTHER = Device("GPU-b", 1, "Simulated", 8192, paths=("/dev/nvidia1", "/dev/nvidiactl"))
MIG = Device("MIG-c", 2, "Simulated", 4096, paths=("/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap30"))
JETSON = Device("1421921055981", 0, "Orin", 8192, paths=("/dev/nvhost-gpu",), source="jetson")
DECLARED = Device("gpu0", 0, "Other", 8192, paths=("/dev/dri/renderD128",), source="declared")
TPU = Device("0000:01:00.0", 0, "Coral", 0, accelerator=Accelerator.EDGETPU, paths=("/dev/apex_0",))
SHIPPED = Injection()


def test_everything_is_mounted_read_only_and_nowhere_twice() -> None:
    mounts = answer([GPU], FILES, SHIPPED).mounts
    assert {mount.container_path: mount.host_path for mount in mounts} == {
        "/etc/ld.so.preload": "/state/deviceplugin/gpu-1/ld.so.preload",
        "/usr/lib/edgeshare/1f/libedgeshare_cuda.so": "/state/hook/1f/libedgeshare_cuda.so",
        "/run/edgeshare": "/run/c/gpu-1",
    }
    assert len(mounts) == 3
    assert all(mount.read_only for mount in mounts)


def test_the_preload_file_names_the_library_as_the_container_sees_it() -> None:
    inside = {mount.container_path for mount in answer([GPU], FILES, SHIPPED).mounts}
    assert preload_text("1f", hooked=True).rstrip("\n") in inside
    assert preload_text("1f", hooked=False) == ""


def test_a_container_sees_its_devices_alone() -> None:
    response = answer([GPU, OTHER], FILES, SHIPPED)
    assert response.envs == {"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
    assert [(node.host_path, node.container_path, node.permissions) for node in response.devices] == [
        ("/dev/nvidia0", "/dev/nvidia0", "rw"),
        ("/dev/nvidiactl", "/dev/nvidiactl", "rw"),
        ("/dev/nvidia1", "/dev/nvidia1", "rw"),
    ]
    assert not response.cdi_devices


@pytest.mark.parametrize(
    ("device", "visible"),
    [(GPU, "GPU-a"), (MIG, "MIG-c"), (JETSON, "all"), (DECLARED, "void"), (TPU, None)],
    ids=lambda each: str(each)[:20],
)
def test_nvidias_runtime_is_told_of_each_kind_of_gpu_as_it_knows_it(device: Device, visible: str | None) -> None:
    assert answer([device], FILES, SHIPPED).envs.get("NVIDIA_VISIBLE_DEVICES") == visible


def test_by_the_variable_alone_gpus_have_no_nodes_and_others_do() -> None:
    by_variable = Injection(devices="envvar")
    response = answer([GPU], FILES, by_variable)
    assert response.envs == {"NVIDIA_VISIBLE_DEVICES": "GPU-a"}
    assert not response.devices
    assert [node.host_path for node in answer([TPU], FILES, by_variable).devices] == ["/dev/apex_0"]


def test_by_cdi_devices_are_named_and_have_no_nodes() -> None:
    response = answer([GPU, OTHER], FILES, Injection(devices="cdi"))
    assert [each.name for each in response.cdi_devices] == ["edge/gpu=GPU-a", "edge/gpu=GPU-b"]
    assert response.envs == {"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
    assert not response.devices
    assert [each.name for each in answer([TPU], FILES, Injection(devices="cdi")).cdi_devices] == [
        "edge/tpu=0000:01:00.0"
    ]


def test_by_somebody_elses_cdi_spec_nvidias_runtime_adds_nothing() -> None:
    theirs = Injection(devices="cdi", cdi_gpu_kind="nvidia.com/gpu")
    response = answer([GPU], FILES, theirs)
    assert [each.name for each in response.cdi_devices] == ["nvidia.com/gpu=GPU-a"]
    assert response.envs == {"NVIDIA_VISIBLE_DEVICES": "void"}
    # Without CDI the kind means nothing.
    assert answer([GPU], FILES, Injection(cdi_gpu_kind="nvidia.com/gpu")).envs == {"NVIDIA_VISIBLE_DEVICES": "GPU-a"}


@pytest.mark.parametrize("device_id", ["a b", "a/b", "-a", "a-", "", "ä"])
def test_an_id_that_is_no_cdi_name_is_refused_with_what_to_do(device_id: str) -> None:
    with pytest.raises(InvalidRequest, match=r"cannot be a CDI name.*give the device another id"):
        answer([replace(GPU, id=device_id)], FILES, Injection(devices="cdi"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"devices": "volume-mounts"},
        {"hook": "yes"},
        {"cdi_gpu_kind": "gpu"},
        {"cdi_gpu_kind": "nvidia.com/gpu/all"},
        {"cdi_gpu_kind": "9a.com/gpu"},
        {"cdi": True},
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Injection.model_validate(wrong)
