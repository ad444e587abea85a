"""What is derived of GPUs, whatever their driver says of them."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.labels import label_value
from edgeshare.inventory.gpus import MigAttributes
from labeller.derive import gpus, reactor, shares
from labeller.facts import CoralFacts, DriverFacts, Facts, GpuFacts, JetsonFacts, MigProfile, NvmlFacts
from tests.kit.labeller.labelling import invalid

DRIVER = DriverFacts("580.95.05", 13, 0)
T4 = GpuFacts("GPU-t4", 0, "Tesla T4", 14910, 15360, 7, 5, "10de", "1eb8", "030200")
V100 = GpuFacts("GPU-v100", 1, "Tesla V100-SXM2-16GB", 16384, 16384, 7, 0, "10de", "1db1", "030200")
H100 = GpuFacts("GPU-h100", 0, "NVIDIA H100 80GB HBM3", 81000, 81559, 9, 0, "10de", "2330", "030200", mig_capable=True)
SMALL = MigProfile(
    "1g.10gb", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 3, 9984, 9970, MigAttributes(16, 1, 1, 1, 1, 0, 1, 0)
)
LARGE = MigProfile("3g.40gb", "NVIDIA H100 80GB HBM3 MIG 3g.40gb", 1, 40448, 40448)
ORIN = JetsonFacts(
    ("nvidia,p3768-0000+p3767-0005", "nvidia,p3767-0005", "nvidia,tegra234"),
    "NVIDIA Jetson Orin Nano Developer Kit",
    "36.4.7",
    7619,
)

texts = st.text(max_size=80) | st.text(st.sampled_from("aA1-_. +"), max_size=80) | st.text(min_size=500, max_size=500)
small = st.integers(0, 13)
profiles = st.builds(MigProfile, texts, texts, small, small, small, st.none() | st.builds(MigAttributes, *[small] * 8))
gpu_facts = st.builds(
    GpuFacts,
    id=texts,
    index=small,
    product=texts,
    memory_mib=small,
    total_mib=small,
    compute_major=small,
    compute_minor=small,
    vendor_id=texts,
    device_id=texts,
    pci_class=st.sampled_from(["", "030000", "030200", "012000"]),
    virtual=st.booleans(),
    mig_capable=st.booleans(),
    mig_enabled=st.booleans(),
    mig=st.lists(profiles, max_size=3).map(tuple),
)
machines = st.builds(
    Facts,
    nvml=st.none()
    | st.builds(
        NvmlFacts, st.builds(DriverFacts, texts, small, small), st.lists(gpu_facts, max_size=4).map(tuple), texts
    ),
    jetson=st.none() | st.builds(JetsonFacts, st.lists(texts, max_size=3).map(tuple), texts, texts, small),
)


def node(*found: GpuFacts, jetson: JetsonFacts | None = None) -> Facts:
    return Facts(nvml=NvmlFacts(DRIVER, found) if found else None, jetson=jetson)


def told(*found: GpuFacts, jetson: JetsonFacts | None = None) -> dict[str, str]:
    """Our labels, without their common beginning."""
    labels = gpus.labels_of(node(*found, jetson=jetson))
    return {name.removeprefix("edge/gpu."): value for name, value in labels.items()}


@given(machines)
def test_every_label_is_valid_whatever_a_driver_says(facts: Facts) -> None:
    assert invalid(gpus.labels_of(facts)) == []
    assert invalid(shares.labels_of(facts, 1)) == []
    assert invalid(reactor.labels_of(facts, False)) == []


@given(machines)
def test_gpus_are_counted_by_model_and_none_is_left_out(facts: Facts) -> None:
    labels = gpus.labels_of(facts)
    there = gpus.gpus_of(facts)
    nameless = sum(not label_value(gpu.product) for gpu in there)
    counts = [int(value) for name, value in labels.items() if name.startswith("edge/gpu.count.")]
    assert sum(counts) == len(there) - nameless
    assert len(counts) == len({gpu.product for gpu in there if label_value(gpu.product)})


@given(st.lists(gpu_facts, max_size=4), st.randoms())
def test_the_order_of_gpus_says_nothing(found: list[GpuFacts], random: Random) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)
    assert told(*found) == told(*shuffled)


@given(st.text())
def test_a_spelled_model_is_spelled_as_itself(model: str) -> None:
    assert label_value(label_value(model)) == label_value(model)


def test_what_is_not_true_of_all_gpus_is_not_told() -> None:
    labels = told(T4, V100, replace(V100, index=2))
    assert labels["count"] == "3"
    assert (labels["count.Tesla-T4"], labels["count.Tesla-V100-SXM2-16GB"]) == ("1", "2")
    assert labels["mode"] == "compute"
    assert not {"product", "memory", "family", "compute.major", "compute.minor"} & labels.keys()
    assert told(T4, replace(T4, total_mib=15109))["product"] == "Tesla-T4"
    assert "memory" not in told(T4, replace(T4, total_mib=15109))
    assert "mode" not in told(T4, replace(T4, pci_class="030000"))


def test_models_of_one_spelling_are_told_apart() -> None:
    labels = told(replace(T4, product="Tesla T4"), replace(T4, product="Tesla-T4"), replace(T4, product="Tesla T4"))
    assert (labels["count.Tesla-T4"], labels["count.Tesla-T4-2"]) == ("1", "2")


def test_a_long_name_is_cut() -> None:
    labels = told(replace(T4, product="NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"))
    assert labels["product"] == "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"
    assert labels["count.NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Editi"] == "1"


@pytest.mark.parametrize(
    ("compute", "family"),
    [
        ((3, 7), "kepler"),
        ((5, 3), "maxwell"),
        ((6, 1), "pascal"),
        ((7, 0), "volta"),
        ((7, 2), "volta"),
        ((7, 5), "turing"),
        ((8, 0), "ampere"),
        ((8, 7), "ampere"),
        ((8, 9), "ada-lovelace"),
        ((9, 0), "hopper"),
        ((10, 0), "blackwell"),
        ((11, 0), "blackwell"),
        ((12, 1), "blackwell"),
        ((13, 0), None),
        ((0, 0), None),
    ],
)
def test_a_family_follows_from_the_compute_capability(compute: tuple[int, int], family: str | None) -> None:
    labels = told(replace(T4, compute_major=compute[0], compute_minor=compute[1]))
    assert labels.get("family") == family
    known = {"compute.major": str(compute[0]), "compute.minor": str(compute[1])} if compute[0] else {}
    assert {name: value for name, value in labels.items() if name.startswith("compute.")} == known


@pytest.mark.parametrize(
    ("version", "parts"),
    [
        ("580.95.05", {"full": "580.95.05", "major": "580", "minor": "95", "revision": "05"}),
        ("455.06", {"full": "455.06", "major": "455", "minor": "06"}),
        ("", {}),
    ],
)
def test_a_driver_is_told_in_full_and_in_parts(version: str, parts: dict[str, str]) -> None:
    labels = gpus.labels_of(Facts(nvml=NvmlFacts(DriverFacts(version, 12, 4), (T4,))))
    before = "edge/gpu.cuda.driver-version."
    assert {name.removeprefix(before): value for name, value in labels.items() if name.startswith(before)} == parts
    assert labels["edge/gpu.cuda.runtime-version.full"] == "12.4"


def test_a_gpu_that_nobody_can_divide_has_no_strategy() -> None:
    assert told(T4)["mig.capable"] == "false"
    assert "mig.strategy" not in told(T4)


@pytest.mark.parametrize(
    ("divided", "strategy"),
    [
        ([None, None], "none"),
        ([(SMALL,), (SMALL,)], "single"),
        ([(SMALL,), (LARGE,)], "mixed"),
        ([(SMALL, LARGE)], "mixed"),
        ([(SMALL,), None], "mixed"),
        ([(SMALL,), ()], "mixed"),
        ([()], "mixed"),
    ],
)
def test_the_strategy_is_what_is_there(divided: list[tuple[MigProfile, ...] | None], strategy: str) -> None:
    labels = told(*(H100 if mig is None else replace(H100, mig_enabled=True, mig=mig) for mig in divided))
    assert (labels["mig.capable"], labels["mig.strategy"]) == ("true", strategy)


def test_mig_devices_are_told_by_profile() -> None:
    other = replace(SMALL, product="NVIDIA A100-SXM4-80GB MIG 1g.10gb", total_mib=9728, count=7)
    media = replace(SMALL, name="1g.10gb+me", count=1)
    labels = told(*(replace(H100, mig_enabled=True, mig=mig) for mig in [(SMALL, media), (other,)]))
    assert labels["mig-1g.10gb.count"] == "10"
    assert labels["mig-1g.10gb.multiprocessors"] == "16"
    # These differ.
    assert not {"mig-1g.10gb.product", "mig-1g.10gb.memory"} & labels.keys()
    assert (labels["mig-1g.10gb.me.count"], labels["mig-1g.10gb.me.memory"]) == ("1", "9984")
    attributes = {name for name in labels if name.startswith("mig-1g.10gb.me.")}
    assert len(attributes) == 11
    # Drivers before 450.80 tell no attributes.
    assert len([name for name in told(replace(H100, mig_enabled=True, mig=(LARGE,))) if "mig-" in name]) == 3


def test_a_jetsons_gpu_is_one_however_many_tell_of_it() -> None:
    integrated = GpuFacts("GPU-orin", 0, "Orin (nvgpu)", 0, 0, 8, 7)
    for labels in (told(jetson=ORIN), told(integrated, jetson=ORIN)):
        assert (labels["count"], labels["count.NVIDIA-Jetson-Orin-Nano"]) == ("1", "1")
        assert labels["product"] == "NVIDIA-Jetson-Orin-Nano"
        assert (labels["memory"], labels["family"], labels["compute.minor"]) == ("7619", "ampere", "7")
        assert labels["machine"] == "NVIDIA-Jetson-Orin-Nano-Developer-Kit"
    assert "cuda.runtime-version.full" in told(integrated, jetson=ORIN)
    assert told(integrated, T4, jetson=ORIN)["count"] == "2"


def test_nothing_is_told_of_gpus_while_a_jetson_may_be_there() -> None:
    unread = replace(node(GpuFacts("GPU-orin", 0, "Orin (nvgpu)", 0, 0, 8, 7), T4), unread=frozenset({"jetson"}))
    assert gpus.labels_of(unread) == {}
    assert share(unread) == (None, None, None)


def test_a_machine_with_no_gpu_has_no_such_label() -> None:
    assert gpus.labels_of(Facts()) == {}
    assert gpus.labels_of(Facts(nvml=NvmlFacts(DRIVER, (), "a machine"))) == {}
    assert shares.labels_of(Facts(), 1024) == {}


def share(facts: Facts) -> tuple[str | None, ...]:
    labels = shares.labels_of(facts, 1024)
    return tuple(labels.get(f"edge/gpu.share{end}") for end in ("", ".units", ".memory-mib"))


def test_a_share_is_of_what_the_driver_leaves() -> None:
    assert share(node(T4, V100)) == ("true", "200", str(14910 + 16384))


def test_mig_devices_are_shared_in_place_of_their_gpu() -> None:
    divided = replace(H100, mig_enabled=True, mig=(SMALL, LARGE))
    assert share(node(divided, H100)) == ("true", "500", str(3 * 9970 + 40448 + 81000))
    assert share(node(replace(H100, mig_enabled=True))) == (None, None, None)


def test_a_jetson_shares_what_its_system_does_not_keep() -> None:
    assert share(node(jetson=ORIN)) == ("true", "100", str(7619 - 1024))
    assert share(node(GpuFacts("GPU-orin", 0, "Orin (nvgpu)", 0, 0, 8, 7), jetson=ORIN))[1] == "100"
    assert share(node(jetson=replace(ORIN, compatible=("nvidia,tegra30",)))) == (None, None, None)
    assert share(node(jetson=replace(ORIN, memory_mib=1024))) == (None, None, None)


def test_a_gpu_whose_memory_is_the_machines_is_not_shared() -> None:
    assert share(node(GpuFacts("GPU-spark", 0, "NVIDIA GB10", 0, 0, 12, 1))) == (None, None, None)


def test_edgetpus_are_shared_by_themselves() -> None:
    corals = (CoralFacts("2-1", "usb", "1a6e", "089a"), CoralFacts("0000:03:00.0", "pcie", "1ac1", "089a"))
    assert shares.labels_of(Facts(corals=corals), 1024) == {"edge/tpu.share": "true", "edge/tpu.share.units": "200"}


def reactor_of(*found: GpuFacts) -> dict[str, str]:
    return reactor.labels_of(node(*found), False)


def test_reactors_names_are_of_the_card_in_full() -> None:
    rtx4090 = GpuFacts("GPU-4090", 0, "NVIDIA GeForce RTX 4090", 24215, 24564, 8, 9, "10de", "2684", "030000")
    assert reactor_of(rtx4090, replace(rtx4090, index=1)) == {
        "gpu.driver": "580.95.05",
        "gpu.model": "NVIDIA-GeForce-RTX-4090",
        "gpu.resource": "nvidia-smi",
        "gpu.vendor.id": "10de",
        "gpu.product.id": "2684",
    }


def test_reactors_names_of_several_models_are_the_first_ones() -> None:
    assert reactor_of(T4, V100) == reactor_of(T4)
    assert reactor_of(V100, T4) == reactor_of(V100)
