"""GPUs that another device plugin on the node hands out too."""

from edgeshare.contract.devices import Accelerator, Device
from edgeshare.inventory.contested import contested

FIRST = Device("GPU-1", 0, "Tesla T4", 15360, source="nvml")
SECOND = Device("GPU-2", 1, "Tesla T4", 15360, source="nvml")
PART = Device("MIG-a", 0, "A100 MIG 1g.5gb", 4864, source="nvml", parent="GPU-a100")
OTHERS = [
    Device("1421919056789", 0, "NVIDIA Jetson Nano", 3452, source="jetson"),
    Device("0000:03:00.0", 0, "Coral EdgeTPU PCIe", 0, Accelerator.EDGETPU, source="edgetpu"),
    Device("0", 2, "declared", 1024, source="declared"),
]


def test_a_gpu_that_another_plugin_names_is_refused_with_the_resource_and_what_to_do() -> None:
    refused = contested([FIRST, SECOND, *OTHERS], {"nvidia.com/gpu": ["GPU-2"]})
    assert refused == {
        "GPU-2": "GPU GPU-2 is not shared: nvidia.com/gpu on this node has it too; "
        "leave it out of one of the two plugins' configurations"
    }


def test_one_that_is_left_out_there_is_ours() -> None:
    assert contested([FIRST], {"nvidia.com/gpu": ["GPU-2", "GPU-3"]}) == {}


def test_replicas_of_a_gpu_are_that_gpu() -> None:
    assert set(contested([FIRST, SECOND], {"nvidia.com/gpu.shared": ["GPU-1::0", "GPU-1::1"]})) == {"GPU-1"}


def test_other_plugins_numbers_are_their_own_affair() -> None:
    assert contested([FIRST, SECOND, *OTHERS], {"vendor.com/fpga": ["0", "1"]}) == {}


def test_any_resource_that_names_a_gpu_has_it() -> None:
    assert set(contested([FIRST], {"vendor.com/vgpu": ["GPU-1::7"]})) == {"GPU-1"}


def test_whoever_has_the_whole_gpu_has_its_mig_devices() -> None:
    assert set(contested([PART], {"nvidia.com/gpu": ["GPU-a100"]})) == {"MIG-a"}
    assert set(contested([PART], {"nvidia.com/mig-1g.5gb": ["MIG-a"]})) == {"MIG-a"}
    assert contested([PART], {"nvidia.com/mig-1g.5gb": ["MIG-b"]}) == {}
    assert contested([PART], {"nvidia.com/gpu": ["0"]}) == {}


def test_a_jetsons_gpu_has_one_name_in_nvidias_plugin() -> None:
    jetson = OTHERS[0]
    for units in (["tegra"], ["tegra::0", "tegra::1"]):
        assert set(contested([FIRST, *OTHERS], {"nvidia.com/gpu": units})) == {jetson.id}
    assert contested(OTHERS, {"vendor.com/fpga": ["tegra"]}) == {}


def test_a_plugin_that_advertises_none_is_in_nobodys_way() -> None:
    assert contested([FIRST], {"nvidia.com/gpu": []}) == {}
