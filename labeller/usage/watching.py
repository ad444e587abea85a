"""Watches the use of a machine's accelerators, and publishes it."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from prometheus_client.core import Metric

from edgeshare.contract.errors import Unavailable
from edgeshare.http import web
from edgeshare.http.pages import pages
from edgeshare.http.prometheus import exposition
from edgeshare.inventory.boards import module_of
from edgeshare.inventory.jetson import JetsonInventory
from edgeshare.inventory.tree import DEVICETREE, Tree
from labeller.config import Config, UsageConfig
from labeller.usage.driver import NvmlWatch
from labeller.usage.metrics import Tool, families
from labeller.usage.readings import Identity, Reading, of_sample, together
from labeller.usage.tegrastats import Sample, parse
from labeller.usage.tool import Follower, Pace

logger = logging.getLogger(__name__)

Value = TypeVar("Value")

ADDRESS = "127.0.0.1:9417"
"""Where the config names none: on this machine alone."""

FRESH_INTERVALS = 3
FRESH_S_MIN = 5.0
"""A reading is one of now for so many intervals, and no less: a small machine may be busy for a while."""


async def run(config: Config, root: Path, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Publishes the use of this machine's accelerators at ``/metrics`` until ``stop``; ``ready`` is told where. A
    machine without any is a normal one. Raises Unavailable where it cannot listen."""
    watching = Watching(config.usage, root)

    async def written() -> bytes:
        return exposition(watching.families())

    async with web.serving(config.metrics_address or ADDRESS, pages(written)) as address:
        logger.info("metrics at http://%s/metrics", address)
        ready(f"metrics at http://{address}/metrics")
        await watching.run(stop)


class Watching:
    """Looks at the accelerators, and keeps what it saw last, while that is news."""

    def __init__(self, config: UsageConfig, root: Path) -> None:
        fresh_s = max(FRESH_S_MIN, FRESH_INTERVALS * config.interval_s)
        self._jetson = _jetson_of(root)
        self._sample: _Latest[Sample] = _Latest(fresh_s)
        self._gpus: _Latest[Sequence[Reading]] = _Latest(fresh_s)
        command = (str(root / config.tegrastats.relative_to("/")), "--interval", str(round(1000 * config.interval_s)))
        self._tegrastats = Follower(command, self._take_line, Pace(config.interval_s, silence_s=fresh_s))
        self._nvml = NvmlWatch(self._gpus.take, root, config.interval_s)

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``; then no process is left, and no library held."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tegrastats.run(stop))
            looking = group.create_task(self._nvml.run())
            await stop.wait()
            # A driver that hangs is not waited for.
            looking.cancel()

    def families(self) -> Iterator[Metric]:
        """The metrics as of now."""
        sample, gpus = self._sample.value(), self._gpus.value()
        # It is there on Jetsons alone: one that is not known here has no name, and is as busy all the same.
        board = None if sample is None else of_sample(sample, self._jetson or Identity("", ""))
        tools = []
        if self._tegrastats.there:
            follower = self._tegrastats
            tools.append(Tool("tegrastats", sample is not None, follower.starts, follower.skipped_lines))
        if self._nvml.there:
            tools.append(Tool("nvml", gpus is not None))
        return families(together(board, gpus or (), self._jetson), tools)

    def _take_line(self, line: bytes) -> bool:
        sample = parse(line)
        if sample is not None:
            self._sample.take(sample)
        return sample is not None


class _Latest(Generic[Value]):
    """What came last, for as long as it is news."""

    def __init__(self, fresh_s: float) -> None:
        self._fresh_s = fresh_s
        self._value: Value | None = None
        self._at_s = 0.0

    def take(self, value: Value) -> None:
        self._value, self._at_s = value, asyncio.get_running_loop().time()

    def value(self) -> Value | None:
        old_s = asyncio.get_running_loop().time() - self._at_s
        return self._value if old_s <= self._fresh_s else None


def _jetson_of(root: Path) -> Identity | None:
    """The Jetson's GPU, as the device plugin calls it; None on a machine that is none, or that cannot be made out."""
    try:
        found = JetsonInventory(0, root).devices()
    except Unavailable:
        # Without a serial number it cannot be shared, and is as busy all the same.
        return _nameless(root)
    return Identity(found[0].id, found[0].model) if found else None


def _nameless(root: Path) -> Identity | None:
    try:
        model = module_of(Tree(root).strings(f"{DEVICETREE}/compatible"))
    except Unavailable:
        model = None
    return Identity("", model) if model else None
