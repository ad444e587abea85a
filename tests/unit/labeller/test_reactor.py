"""reActor's names, as people select nodes by them today, and what they say where reActor is wrong."""

from dataclasses import replace

import pytest

from labeller.derive.reactor import labels_of
from labeller.facts import CoralFacts, DriverFacts, Facts, GpuFacts, JetsonFacts, NvmlFacts

USB = CoralFacts("2-1", "usb", "1a6e", "089a")


def gpu(product: str, index: int = 0) -> GpuFacts:
    return GpuFacts(f"GPU-{index}", index, product, 16384, 16384, 8, 9)


def cards(*products: str) -> Facts:
    gpus = tuple(gpu(product, index) for index, product in enumerate(products))
    return Facts(nvml=NvmlFacts(DriverFacts("580.95.05", 13, 0), gpus))


def jetson(compatible: str, model: str = "", release: str = "") -> Facts:
    return Facts(jetson=JetsonFacts((compatible, "nvidia,tegra"), model, release, 0))


@pytest.mark.parametrize(
    ("compatible", "model", "expected"),
    [
        ("nvidia,p2371-2180", "NVIDIA Jetson TX1 Developer Kit", "Jetson-TX1"),
        ("nvidia,quill", "quill", "Jetson-TX2"),
        ("nvidia,jetson-nano", "NVIDIA Jetson Nano Developer Kit", "Jetson-Nano"),
        ("nvidia,p2822-0000+p2888-0001", "Jetson-AGX", "Jetson-AGX"),
        ("nvidia,p2822-0000+p2888-0001", "jetson-xavier", "Jetson-Xavier"),
        ("nvidia,p3737-0000+p3701-0005", "NVIDIA Jetson AGX Orin Developer Kit", "Jetson-AGX"),
        # It calls this one Jetson-Nano, too.
        ("nvidia,p3767-0005", "NVIDIA Jetson Orin Nano Developer Kit", "Jetson-Orin-Nano"),
        # It does not know these.
        ("nvidia,p3767-0000", "NVIDIA Orin NX Developer Kit", "Jetson-Orin-NX"),
        ("nvidia,p3509-0000+p3668-0000", "NVIDIA Jetson Xavier NX Developer Kit (SD-card)", "Jetson-Xavier-NX"),
        ("nvidia,p3509-0000+p3636-0001", "NVIDIA Jetson TX2 NX Developer Kit", "Jetson-TX2-NX"),
        ("nvidia,p9999", "NVIDIA Jetson New", "Jetson-New"),
    ],
)
def test_a_jetson_is_known_by_its_module(compatible: str, model: str, expected: str) -> None:
    assert labels_of(jetson(compatible, model), False)["gpu.model"] == expected


def test_a_jetson_has_its_release_for_a_driver_and_its_tool() -> None:
    labels = labels_of(jetson("nvidia,jetson-nano", release="32.4.3"), False)
    assert labels == {"gpu.model": "Jetson-Nano", "gpu.driver": "32.4.3", "gpu.resource": "tegrastats"}


def test_a_switch_keeps_their_release() -> None:
    assert labels_of(jetson("nvidia,jetson-nano", release="32.4.3"), True)["gpu.driver"] == "4.3"


@pytest.mark.parametrize("legacy", [False, True])
def test_without_a_release_there_is_no_driver(legacy: bool) -> None:
    assert "gpu.driver" not in labels_of(jetson("nvidia,jetson-nano"), legacy)


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        # As they have it.
        ("Tesla T4", "TeslaT4"),
        ("Tesla V100-SXM2-16GB", "TeslaV100-SXM2-16GB"),
        # They say NVIDIAGeForce and TITANX.
        ("NVIDIA GeForce RTX 4090", "NVIDIA-GeForce-RTX-4090"),
        ("TITAN X (Pascal)", "TITAN-X-Pascal"),
    ],
)
def test_a_card_is_known_by_its_whole_name(product: str, expected: str) -> None:
    assert labels_of(cards(product), False) == {
        "gpu.model": expected,
        "gpu.driver": "580.95.05",
        "gpu.resource": "nvidia-smi",
    }


def test_of_several_cards_the_first_is_named() -> None:
    assert labels_of(cards("Tesla V100-SXM2-16GB", "Tesla T4"), False)["gpu.model"] == "TeslaV100-SXM2-16GB"


def test_a_coral_has_its_ids_and_no_tool() -> None:
    labels = {"gpu.model": "Google-Coral-TPU", "gpu.vendor.id": "1a6e", "gpu.product.id": "089a"}
    assert labels_of(Facts(corals=(USB,)), False) == labels


def test_a_coral_beside_a_gpu_is_not_the_gpu() -> None:
    both = Facts(jetson=jetson("nvidia,jetson-nano").jetson, corals=(USB,))
    assert labels_of(both, False) == {"gpu.model": "Jetson-Nano", "gpu.resource": "tegrastats"}


def test_a_machine_with_none_of_them_has_no_label() -> None:
    assert labels_of(Facts(nvml=NvmlFacts(DriverFacts("580.95.05", 13, 0), ())), False) == {}


def test_nothing_is_told_while_what_goes_first_may_be_there() -> None:
    coral = Facts(corals=(USB,))
    assert labels_of(replace(coral, unread=frozenset({"jetson"})), False) == {}
    assert labels_of(replace(coral, unread=frozenset({"nvml"})), False) == {}
    assert labels_of(replace(cards("Tesla T4"), unread=frozenset({"jetson"})), False) == {}
    assert labels_of(replace(cards("Tesla T4"), unread=frozenset({"nvml"})), False)["gpu.model"] == "TeslaT4"
