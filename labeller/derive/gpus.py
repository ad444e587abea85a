"""What NVIDIA's GPU feature discovery tells of a node's GPUs, under our prefix: its ``nvidia.com/gpu.X`` is our
``edge/gpu.X``, and any other ``nvidia.com/X`` too.

A label that says something of the GPUs is true of all of them, or is not there: theirs, on a node of several models, is
that of one of them by chance. How many there are of each model stands in ``edge/gpu.count.<model>``. The time of the
look is not told, since it would change the node at each; the number of replicas neither: a share says it better.
(NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery/README.md and internal/lm.)
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from edgeshare.contract.labels import label_names, label_value
from edgeshare.inventory.boards import model_of
from edgeshare.inventory.gpus import MigAttributes
from labeller import names
from labeller.facts import DriverFacts, Facts, GpuFacts, JetsonFacts, MigProfile

Item = TypeVar("Item")

FAMILIES = {
    1: "tesla",
    2: "fermi",
    3: "kepler",
    5: "maxwell",
    6: "pascal",
    7: "volta",
    8: "ampere",
    9: "hopper",
    10: "blackwell",
    11: "blackwell",
    12: "blackwell",
}
"""Compute capability's first number → family. (NVIDIA, "CUDA GPU Compute Capability".)"""

TURING = (7, 5)
ADA_LOVELACE = (8, 9)
"""Families whose compute capabilities share their first number with an older one's."""

TEGRAS = {
    "nvidia,tegra210": (5, 3),
    "nvidia,tegra186": (6, 2),
    "nvidia,tegra194": (7, 2),
    "nvidia,tegra234": (8, 7),
    "nvidia,tegra264": (11, 0),
}
"""Compute capability of the GPUs of Jetsons. (Same source.)"""

MODES = {"030000": "graphics", "030200": "compute"}
"""PCI class, that of a display or of a 3D controller → what the GPU is set up for. (internal/lm/nvml.go.)"""


def labels_of(facts: Facts) -> dict[str, str]:
    """All that is known of the GPUs and their driver; nothing on a machine without one."""
    gpus = gpus_of(facts)
    if not gpus:
        return {}
    told = {
        names.GPU_COUNT: str(len(gpus)),
        names.GPU_PRODUCT: common(gpus, lambda gpu: gpu.product),
        names.GPU_MEMORY: common(gpus, lambda gpu: str(gpu.total_mib or "")),
        names.GPU_MODE: common(gpus, _mode),
        names.GPU_MACHINE: facts.jetson.model if facts.jetson else facts.nvml.machine if facts.nvml else "",
        **_compute(gpus),
        **(_driver(facts.nvml.driver) if facts.nvml else {}),
        **_mig(gpus),
    }
    counts = Counter(gpu.product for gpu in gpus)
    spelled = label_names(counts, names.GPU_COUNT_OF)
    labels = {name: value for name, text in told.items() if (value := label_value(text))}
    return labels | {name: str(counts[product]) for product, name in spelled.items()}


def gpus_of(facts: Facts) -> tuple[GpuFacts, ...]:
    """Every GPU once: that of a Jetson, which NVML on the newer ones lists too, without its memory, and the cards. None
    while a Jetson may be there, unread."""
    told = facts.nvml.gpus if facts.nvml else ()
    if "jetson" in facts.unread:
        return ()
    if facts.jetson is None:
        return told
    return (_integrated(facts.jetson), *(gpu for gpu in told if gpu.total_mib))


def _integrated(jetson: JetsonFacts) -> GpuFacts:
    major, minor = next((TEGRAS[soc] for soc in jetson.compatible if soc in TEGRAS), (0, 0))
    return GpuFacts(
        id="",
        index=0,
        product=model_of(jetson.compatible, jetson.model),
        memory_mib=jetson.memory_mib,
        total_mib=jetson.memory_mib,
        compute_major=major,
        compute_minor=minor,
    )


def common(items: Iterable[Item], told: Callable[[Item], str]) -> str:
    """What is told of all alike; empty where they differ."""
    values = {told(item) for item in items}
    return values.pop() if len(values) == 1 else ""


def _mode(gpu: GpuFacts) -> str:
    return "vgpu" if gpu.virtual else MODES.get(gpu.pci_class, "")


def _compute(gpus: Sequence[GpuFacts]) -> dict[str, str]:
    major, _, minor = common(gpus, lambda gpu: f"{gpu.compute_major}.{gpu.compute_minor}").partition(".")
    known = major not in ("", "0")
    return {
        names.GPU_FAMILY: common(gpus, _family),
        names.GPU_COMPUTE_MAJOR: major if known else "",
        names.GPU_COMPUTE_MINOR: minor if known else "",
    }


def _family(gpu: GpuFacts) -> str:
    """As GPU feature discovery spells it. (internal/lm/resource.go.)"""
    compute = (gpu.compute_major, gpu.compute_minor)
    if TURING <= compute < (8, 0):
        return "turing"
    if ADA_LOVELACE <= compute < (9, 0):
        return "ada-lovelace"
    return FAMILIES.get(gpu.compute_major, "")


def _driver(driver: DriverFacts) -> dict[str, str]:
    major, minor, revision = [*driver.version.split("."), "", ""][:3]
    cuda = {
        names.GPU_CUDA: f"{driver.cuda_major}.{driver.cuda_minor}",
        names.GPU_CUDA_MAJOR: str(driver.cuda_major),
        names.GPU_CUDA_MINOR: str(driver.cuda_minor),
    }
    return {
        names.GPU_DRIVER: driver.version,
        names.GPU_DRIVER_MAJOR: major,
        names.GPU_DRIVER_MINOR: minor,
        names.GPU_DRIVER_REVISION: revision,
        **(cuda if driver.cuda_major else {}),
    }


def _mig(gpus: Sequence[GpuFacts]) -> dict[str, str]:
    if not any(gpu.mig_capable for gpu in gpus):
        return {names.GPU_MIG_CAPABLE: "false"}
    labels = {names.GPU_MIG_CAPABLE: "true", names.GPU_MIG_STRATEGY: _strategy(gpus)}
    by_name: dict[str, list[MigProfile]] = defaultdict(list)
    for gpu in gpus:
        for profile in gpu.mig:
            # As they, and NVIDIA's device plugin for its resources: ``1g.10gb+me`` is ``1g.10gb.me``.
            by_name[profile.name.replace("+", ".")].append(profile)
    for end, told in MIG_ENDS.items():
        for name, label in label_names(by_name, names.GPU_MIG_OF, end).items():
            labels[label] = told(by_name[name])
    return labels


def _strategy(gpus: Sequence[GpuFacts]) -> str:
    """Theirs is set by hand, ours is what is there: ``none`` where no GPU is in MIG mode, ``single`` where each is
    divided, all into MIG devices of one profile, ``mixed`` otherwise."""
    if not any(gpu.mig_enabled for gpu in gpus):
        return "none"
    profiles = {profile.name for gpu in gpus for profile in gpu.mig}
    return "single" if all(gpu.mig for gpu in gpus) and len(profiles) == 1 else "mixed"


def _each(told: Callable[[MigProfile], object]) -> Callable[[Sequence[MigProfile]], str]:
    return lambda profiles: common(profiles, lambda profile: str(told(profile)))


def _each_has(told: Callable[[MigAttributes], int]) -> Callable[[Sequence[MigProfile]], str]:
    return _each(lambda profile: told(profile.attributes) if profile.attributes else "")


MIG_ENDS: Mapping[str, Callable[[Sequence[MigProfile]], str]] = {
    names.MIG_COUNT: lambda profiles: str(sum(profile.count for profile in profiles)),
    names.MIG_PRODUCT: _each(lambda profile: profile.product),
    names.MIG_MEMORY: _each(lambda profile: profile.total_mib),
    names.MIG_MULTIPROCESSORS: _each_has(lambda its: its.multiprocessors),
    names.MIG_GPU_SLICES: _each_has(lambda its: its.gpu_instance_slices),
    names.MIG_COMPUTE_SLICES: _each_has(lambda its: its.compute_instance_slices),
    names.MIG_COPY_ENGINES: _each_has(lambda its: its.copy_engines),
    names.MIG_DECODERS: _each_has(lambda its: its.decoders),
    names.MIG_ENCODERS: _each_has(lambda its: its.encoders),
    names.MIG_JPEG_ENGINES: _each_has(lambda its: its.jpeg_engines),
    names.MIG_OFA_ENGINES: _each_has(lambda its: its.ofa_engines),
}
"""The end of a label → what it says of the MIG devices of one profile."""
