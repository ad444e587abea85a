from pathlib import Path

from deviceplugin.injection import Injected, answer, preload_text
from edgeshare.devices import Device

FILES = Injected(
    Path("/state/hook/1f/libedgeshare_cuda.so"),
    "1f",
    Path("/state/deviceplugin/gpu-1/ld.so.preload"),
    Path("/run/c/gpu-1"),
)
GPU = Device("GPU-a", 0, "Simulated", 8192)


def test_everything_is_mounted_read_only_and_nowhere_twice() -> None:
    mounts = answer([GPU], FILES, []).mounts
    assert {mount.container_path: mount.host_path for mount in mounts} == {
        "/etc/ld.so.preload": "/state/deviceplugin/gpu-1/ld.so.preload",
        "/usr/lib/edgeshare/1f/libedgeshare_cuda.so": "/state/hook/1f/libedgeshare_cuda.so",
        "/run/edgeshare": "/run/c/gpu-1",
    }
    assert len(mounts) == 3
    assert all(mount.read_only for mount in mounts)


def test_the_preload_file_names_the_library_as_the_container_sees_it() -> None:
    inside = {mount.container_path for mount in answer([GPU], FILES, []).mounts}
    assert preload_text("1f", hooked=True).rstrip("\n") in inside
    assert preload_text("1f", hooked=False) == ""


def test_a_container_sees_its_devices_alone() -> None:
    other = Device("GPU-b", 1, "Simulated", 8192)
    response = answer([GPU, other], FILES, ["/dev/nvidia0", "/dev/nvidiactl"])
    assert response.envs == {"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
    assert [(node.host_path, node.container_path, node.permissions) for node in response.devices] == [
        ("/dev/nvidia0", "/dev/nvidia0", "rw"),
        ("/dev/nvidiactl", "/dev/nvidiactl", "rw"),
    ]
