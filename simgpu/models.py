"""GPU models that a simulated machine can have."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class MigProfile:
    """A shape of MIG device, with one compute instance."""

    memory_mib: int
    slices: int
    """Of the seven of the GPU."""
    multiprocessors: int
    copy_engines: int
    decoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0


# What GPUs can be divided into: NVIDIA, "MIG User Guide", "Supported MIG Profiles"; `nvidia-smi mig -lgip`.
A100_40GB: Mapping[str, MigProfile] = {
    "1g.5gb": MigProfile(4864, 1, 14, 1),
    "2g.10gb": MigProfile(9984, 2, 28, 2, decoders=1),
    "3g.20gb": MigProfile(20096, 3, 42, 3, decoders=2),
    "4g.20gb": MigProfile(20096, 4, 56, 4, decoders=2),
    "7g.40gb": MigProfile(40536, 7, 98, 7, decoders=5, jpeg_engines=1, ofa_engines=1),
}
"""Memory nearly so."""

H100_80GB: Mapping[str, MigProfile] = {
    "1g.10gb": MigProfile(9984, 1, 16, 1, decoders=1, jpeg_engines=1),
    "1g.10gb+me": MigProfile(9984, 1, 16, 1, decoders=1, jpeg_engines=1, ofa_engines=1),
    "1g.20gb": MigProfile(20096, 1, 26, 1, decoders=1, jpeg_engines=1),
    "2g.20gb": MigProfile(20096, 2, 32, 2, decoders=2, jpeg_engines=2),
    "3g.40gb": MigProfile(40448, 3, 60, 3, decoders=3, jpeg_engines=3),
    "4g.40gb": MigProfile(40448, 4, 64, 4, decoders=4, jpeg_engines=4),
    "7g.80gb": MigProfile(81152, 7, 132, 8, decoders=7, jpeg_engines=7, ofa_engines=1),
}
"""Memory as listed in GiB, rounded to 128 MiB."""


@dataclass(frozen=True)
class Model:
    """What a GPU is. Figures are the makers' published ones, rounded where they give a range."""

    name: str
    """As NVML and the driver spell it."""
    architecture: str
    memory_mib: int
    compute: tuple[int, int]
    multiprocessors: int
    threads_per_multiprocessor: int
    clock_mhz: int
    memory_clock_mhz: int
    memory_bus_bits: int
    l2_kib: int
    pci_device_id: int
    """Device in the upper 16 bits, vendor (10de) in the lower, as NVML has it."""
    power_watts: int
    ecc: bool
    integrated: bool = False
    virtual: bool = False
    """Whether it is a vGPU: what a hypervisor made of a part of one."""
    mig: Mapping[str, MigProfile] = field(default_factory=dict)
    """What it can be divided into; nothing: it cannot."""


MODELS = {
    "t4": Model("Tesla T4", "turing", 15360, (7, 5), 40, 1024, 1590, 5001, 256, 4096, 0x1EB810DE, 70, True),
    "v100": Model(
        "Tesla V100-SXM2-16GB", "volta", 16384, (7, 0), 80, 2048, 1530, 877, 4096, 6144, 0x1DB110DE, 300, True
    ),
    "a2": Model("NVIDIA A2", "ampere", 15356, (8, 6), 10, 1536, 1770, 6251, 128, 2048, 0x25B610DE, 60, True),
    "a10": Model("NVIDIA A10", "ampere", 23028, (8, 6), 72, 1536, 1695, 6251, 384, 6144, 0x223610DE, 150, True),
    "a100": Model(
        "NVIDIA A100-SXM4-40GB",
        "ampere",
        40960,
        (8, 0),
        108,
        2048,
        1410,
        1215,
        5120,
        40960,
        0x20B010DE,
        400,
        True,
        mig=A100_40GB,
    ),
    "l4": Model("NVIDIA L4", "ada", 23034, (8, 9), 58, 1536, 2040, 6251, 192, 49152, 0x27B810DE, 72, True),
    "h100": Model(
        "NVIDIA H100 80GB HBM3",
        "hopper",
        81559,
        (9, 0),
        132,
        2048,
        1980,
        2619,
        5120,
        51200,
        0x233010DE,
        700,
        True,
        mig=H100_80GB,
    ),
    "rtx3090": Model(
        "NVIDIA GeForce RTX 3090",
        "ampere",
        24576,
        (8, 6),
        82,
        1536,
        1695,
        9751,
        384,
        6144,
        0x220410DE,
        350,
        False,
    ),
    "rtx4090": Model(
        "NVIDIA GeForce RTX 4090",
        "ada",
        24564,
        (8, 9),
        128,
        1536,
        2520,
        10501,
        384,
        73728,
        0x268410DE,
        450,
        False,
    ),
    "t4-16q": Model(
        "GRID T4-16Q", "turing", 16384, (7, 5), 40, 1024, 1590, 5001, 256, 4096, 0x1EB810DE, 70, False, virtual=True
    ),
    # its memory, which NVML does not tell: NVIDIA/gpu-operator, issue 1794; Project-HAMi/HAMi, pull request 2087
    "gb10": Model(
        "NVIDIA GB10",
        "blackwell",
        122566,
        (12, 1),
        48,
        1536,
        2418,
        4266,
        256,
        24576,
        0x2E1210DE,
        140,
        False,
        integrated=True,
    ),
    "orin": Model("Orin (nvgpu)", "ampere", 30536, (8, 7), 16, 1536, 1300, 3200, 256, 4096, 0, 60, False, True),
}
"""Short name → model. The integrated ones share their memory with the host, as a Jetson's and a DGX Spark's do."""
