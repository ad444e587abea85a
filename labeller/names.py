"""Every label that the labeller writes. No other module spells one."""

OURS = "edge/"
"""Begins the name of each label that is ours alone."""

GPU_COUNT = f"{OURS}gpu.count"
GPU_PRODUCT = f"{OURS}gpu.product"
GPU_MEMORY = f"{OURS}gpu.memory"
"""MiB of each."""

GPU_FAMILY = f"{OURS}gpu.family"
GPU_COMPUTE_MAJOR = f"{OURS}gpu.compute.major"
GPU_COMPUTE_MINOR = f"{OURS}gpu.compute.minor"
GPU_MODE = f"{OURS}gpu.mode"
GPU_MACHINE = f"{OURS}gpu.machine"
GPU_DRIVER = f"{OURS}gpu.cuda.driver-version.full"
GPU_DRIVER_MAJOR = f"{OURS}gpu.cuda.driver-version.major"
GPU_DRIVER_MINOR = f"{OURS}gpu.cuda.driver-version.minor"
GPU_DRIVER_REVISION = f"{OURS}gpu.cuda.driver-version.revision"
GPU_CUDA = f"{OURS}gpu.cuda.runtime-version.full"
GPU_CUDA_MAJOR = f"{OURS}gpu.cuda.runtime-version.major"
GPU_CUDA_MINOR = f"{OURS}gpu.cuda.runtime-version.minor"
GPU_MIG_CAPABLE = f"{OURS}gpu.mig.capable"
GPU_MIG_STRATEGY = f"{OURS}gpu.mig.strategy"
GPU_MIG_OF = f"{OURS}gpu.mig-"
"""Begins those of the MIG devices of a profile, which end with one of these: ``edge/gpu.mig-1g.10gb.count``."""

MIG_COUNT = ".count"
MIG_PRODUCT = ".product"
MIG_MEMORY = ".memory"
MIG_MULTIPROCESSORS = ".multiprocessors"
MIG_GPU_SLICES = ".slices.gi"
MIG_COMPUTE_SLICES = ".slices.ci"
MIG_COPY_ENGINES = ".engines.copy"
MIG_DECODERS = ".engines.decoder"
MIG_ENCODERS = ".engines.encoder"
MIG_JPEG_ENGINES = ".engines.jpeg"
MIG_OFA_ENGINES = ".engines.ofa"

GPU_COUNT_OF = f"{OURS}gpu.count."
"""Begins those that count the GPUs of a model: ``edge/gpu.count.Tesla-T4``."""

GPU_SHARE = f"{OURS}gpu.share"
GPU_SHARE_UNITS = f"{OURS}gpu.share.units"
GPU_SHARE_MEMORY_MIB = f"{OURS}gpu.share.memory-mib"
TPU_SHARE = f"{OURS}tpu.share"
TPU_SHARE_UNITS = f"{OURS}tpu.share.units"

BUS_PRESENT = ".present"
BUS_COUNT = ".count"
"""End those of devices on PCI and USB."""

TPU_COUNT = f"{OURS}tpu.count"
TPU_USB_COUNT = f"{OURS}tpu.usb.count"
TPU_PCIE_COUNT = f"{OURS}tpu.pcie.count"

JETSON_MODULE = f"{OURS}jetson.module"
"""``Jetson-Orin-Nano``."""

JETSON_MODEL = f"{OURS}jetson.model"
"""The devicetree's own words for the machine."""

JETSON_SOC = f"{OURS}jetson.soc"
"""``tegra234``."""

JETSON_RELEASE = f"{OURS}jetson.release"
"""Jetson Linux: ``32.4.3``."""

REACTOR_DRIVER = "gpu.driver"
REACTOR_MODEL = "gpu.model"
REACTOR_RESOURCE = "gpu.resource"
REACTOR_VENDOR = "gpu.vendor.id"
REACTOR_PRODUCT = "gpu.product.id"
"""The names that reActor uses (ddps-lab/edge-accelerator-monitor,
MonitorContainer/*/hw-monitor-automatic-lableing.sh)."""

DEVICETREE = "beta.devicetree.org/"
"""Begins those of k8s-dt-node-labeller. (adaptant-labs/k8s-dt-node-labeller, README.md.)"""

FIELD_MANAGER = "edgeshare-labeller"
"""Under which name the API server keeps what we set."""

FEATURE_PREFIX = "feature.node.kubernetes.io/"
"""Begins the labels that node-feature-discovery makes of names without a prefix."""

NFD_NODE_NAME = "nfd.node.kubernetes.io/node-name"
"""On a NodeFeature object: which node it is about."""


def bus_device(bus: str, *codes: str) -> str:
    """What node-feature-discovery calls a kind of device, under our prefix: ``edge/pci-0302_10de``,
    ``edge/usb-ff_03e7_2485``. (kubernetes-sigs/node-feature-discovery, source/pci/pci.go, source/usb/usb.go.)"""
    return f"{OURS}{bus}-{'_'.join(codes)}"
