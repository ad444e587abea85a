"""Looks again and again at what NVIDIA's driver tells of the use of its GPUs."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from edgeshare import detached
from edgeshare.contract.errors import NoDriver, Unavailable
from edgeshare.inventory.nvml.usage import GpuUsage, NvmlUsage
from edgeshare.inventory.tree import Tree
from labeller.usage.readings import Identity, Reading

logger = logging.getLogger(__name__)


class NvmlWatch:
    """Looks at the use of NVIDIA's GPUs. A driver that hangs holds up nothing: then there is no news."""

    def __init__(self, take: Callable[[Sequence[Reading]], None], root: Path, interval_s: float) -> None:
        """``take`` is given what each look saw."""
        self._take = take
        self._interval_s = interval_s
        self._usage = NvmlUsage(Tree(root))
        self.there = False
        """Whether there is such a driver: none is normal."""

    async def run(self) -> None:
        """Until it is cancelled."""
        told = ""
        try:
            while True:
                trouble = await self._look()
                if trouble and trouble != told:
                    logger.warning("%s", trouble)
                told = trouble
                await asyncio.sleep(self._interval_s)
        finally:
            await detached.close(self._usage.close)

    async def _look(self) -> str:
        """What is wrong; nothing where all is well, or there is no driver."""
        try:
            usages = await detached.result(self._usage.look)
        except NoDriver:
            self.there = False
            return ""
        except Unavailable as error:
            self.there = True
            return str(error)
        self.there = True
        self._take([_reading(usage) for usage in usages])
        return ""


def _reading(usage: GpuUsage) -> Reading:
    return Reading(
        of=Identity(usage.id, usage.model, usage.index, usage.parent),
        load_ratio=None if usage.load_percent is None else usage.load_percent / 100,
        memory_used_bytes=usage.memory_used_bytes,
        memory_total_bytes=usage.memory_total_bytes,
        temperature_c=usage.temperature_c,
        power_w=None if usage.power_mw is None else usage.power_mw / 1000,
    )
