"""A Jetson's GPU, TX1 to Thor: what the devicetree and sysfs say. NVML is not asked: on the older ones it is not there,
and on the others it knows nothing of the memory, which is the machine's."""

from pathlib import Path

from edgeshare.contract.devices import Device
from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.boards import Board, Memory, gpu_of, is_jetson, parse_memory
from edgeshare.inventory.interface import DevicesAlone
from edgeshare.inventory.tree import DEVICETREE, Tree

GPU_NODES = (
    "/dev/nvhost-*gpu",
    "/dev/nvgpu/igpu*/*",
    "/dev/nvidia[0-9]*",
)
"""The GPU's own: Jetson Linux up to 35, from 34 on, and Thor's. (NVIDIA Container Toolkit,
testdata/lookup/rootfs-orin/…/devices.csv; on Thor ``igpu-<PCI address>``: meta-avocado, pull request 248.)"""

SHARED_NODES = (
    "/dev/nvhost-ctrl",
    "/dev/nvmap",
    "/dev/nvsciipc",
    "/dev/host1x-fence",
    "/dev/dri/renderD*",
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-modeset",
)
"""What CUDA opens beside it: memory, synchronisation, the render nodes (without which cuInit fails on an Orin NX). Same
sources."""

GPU_ZONES = ("GPU-therm", "gpu-thermal")
"""The GPU's thermal zone: Jetson Linux up to 35, and from 36 on. (jetson_stats_node_exporter, issue 29.)"""


class JetsonInventory(DevicesAlone):
    """The GPU of the Jetson that this is, if it is one. Its driver tells processes through debugfs alone, which a
    container does not have, and a board's sensors tell what a rail takes now, not what it took."""

    def __init__(self, reserve_mib: int, root: Path = Path("/")) -> None:
        self._tree = Tree(root)
        self._reserve_mib = reserve_mib

    def devices(self) -> list[Device]:
        """None on a machine that is no Jetson; raises Unavailable for one that cannot be made out."""
        compatible = self._tree.strings(f"{DEVICETREE}/compatible")
        if not is_jetson(compatible):
            return []
        board = Board(
            compatible=compatible,
            model=self._tree.line(f"{DEVICETREE}/model") or "",
            serial=self._tree.line(f"{DEVICETREE}/serial-number") or "",
            memory=self._memory(),
            nodes=self._nodes(),
        )
        return [gpu_of(board, self._reserve_mib)]

    def memory_used_mib(self, device_id: str) -> int:
        """All that is in use on the machine: GPU and processors have one memory."""
        try:
            memory = self._memory()
        except Unavailable:
            # The next look at the devices says so.
            return 0
        return memory.total_mib - memory.available_mib

    def temperature_c(self, device_id: str) -> float | None:
        try:
            return self._temperature_c()
        except Unavailable:
            return None

    def _temperature_c(self) -> float | None:
        for zone in self._tree.matches("/sys/class/thermal/thermal_zone*"):
            if self._tree.line(f"{zone}/type") in GPU_ZONES:
                millidegrees = self._tree.number(f"{zone}/temp")
                return None if millidegrees is None else millidegrees / 1000
        return None

    def _memory(self) -> Memory:
        return parse_memory(self._tree.read("/proc/meminfo"))

    def _nodes(self) -> tuple[str, ...]:
        own = [node for pattern in GPU_NODES for node in self._tree.matches(pattern)]
        if not own:
            return ()
        return tuple(own + [node for pattern in SHARED_NODES for node in self._tree.matches(pattern)])
