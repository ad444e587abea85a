"""Keeps a node's labels as its machine is: at the start, every interval, when a device comes or goes, and at SIGHUP."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgeshare import detached
from edgeshare.contract.errors import EdgeshareError, InvalidRequest
from edgeshare.waiting import first_of
from labeller.collect import Collected, Collector
from labeller.config import Config
from labeller.labels import labels_of
from labeller.output import Output, Written
from labeller.udev import device_changes

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
"""After failures in a row the pause doubles from the one to the other: thousands of nodes share one API server."""

SETTLE_S = 1.0
"""A device that comes tells so in many events."""

SLOW_S = 30.0
"""A driver that has not answered by then may never: its kernel module hangs."""


@dataclass(frozen=True)
class Round:
    """What came of one look and one write."""

    written: Written
    troubles: tuple[str, ...]
    """Why a source could not be read, or a label not written."""


def label(collected: Collected, config: Config, output: Output) -> Round:
    """Writes what was found. Raises EdgeshareError where nothing could be written."""
    labels = labels_of(collected.facts, config.switches())
    written = output.write(labels, complete=not collected.unread)
    troubles = [f"{source}: {why}" for source, why in collected.troubles.items()]
    return Round(written, (*troubles, *written.refused))


def clear(others: list[Output]) -> tuple[str, ...]:
    """Takes away what was written to other outputs, and these from the list; why something is left there."""
    try:
        while others:
            others[-1].remove()
            others.pop()
    except EdgeshareError as error:
        return (f"labels that another output may have written are left there: {error}",)
    return ()


class Daemon:
    """Keeps one node's labels. What cannot be read or written for now changes none, and is tried again."""

    def __init__(
        self, configure: Callable[[], Config], interval_s: float, output: Output, others: Sequence[Output]
    ) -> None:
        """``configure`` reads the configuration, now and at each ``hangup``; ``others`` are outputs that an earlier
        configuration may have written to. Raises InvalidRequest where the configuration is wrong."""
        self._configure = configure
        self._interval_s = interval_s
        self._output = output
        self._others = list(others)
        self._config = configure()
        self._collector = Collector(self._config)
        self._collected: Collected | None = None
        """What the last look found; None: there has to be one."""
        self._said: tuple[str, ...] = ()
        self._failures = 0

    async def run(self, stop: asyncio.Event, hangup: asyncio.Event, ready: Callable[[str], None]) -> None:
        """Until ``stop``; at ``hangup`` it reads its configuration and the machine anew. Calls ``ready`` with a line of
        text when the first round is over, however it ended."""
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        with device_changes(changed):
            await self._round(stop)
            ready(f"looks every {self._interval_s:g} s")
            look_s = loop.time() + self._pause_s()
            while not stop.is_set():
                await first_of(stop, hangup, changed, timeout_s=self._rest_s(look_s - loop.time()))
                if changed.is_set():
                    await first_of(stop, timeout_s=SETTLE_S)
                if hangup.is_set():
                    self._reconfigure()
                if hangup.is_set() or changed.is_set() or loop.time() >= look_s:
                    self._collected = None
                hangup.clear()
                changed.clear()
                looks = self._collected is None
                await self._round(stop)
                if looks:
                    look_s = loop.time() + self._pause_s()

    def _rest_s(self, until_look_s: float) -> float:
        return min(until_look_s, self._config.write_interval_s)

    def _pause_s(self) -> float:
        if not self._failures:
            return self._interval_s
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self._failures, 30))
        # What failed on all nodes at once is not to be tried again by all at once.
        return min(self._interval_s, longest * random.uniform(0.5, 1))

    def _reconfigure(self) -> None:
        logger.info("SIGHUP: reading the configuration anew")
        try:
            config = self._configure()
        except InvalidRequest as error:
            logger.warning("the configuration holds as it was: %s", error)
            return
        if config.fixed() != self._config.fixed():
            logger.warning("%s are read once: start the labeller anew for a change of them", ", ".join(config.fixed()))
        if config != self._config:
            self._config, self._collector = config, Collector(config)

    async def _round(self, stop: asyncio.Event) -> None:
        if stop.is_set():
            return
        # In a thread that nobody waits for at the end: neither a driver nor an API server may hold up SIGTERM.
        running = detached.call(self._label)
        await first_of(stop, running, timeout_s=SLOW_S)
        if not stop.is_set() and not running.done():
            logger.warning("the labels stay as they are: the machine has not been read for %g s", SLOW_S)
            await first_of(stop, running)
        if not running.done():
            return
        try:
            done, left = running.result()
        except EdgeshareError as error:
            self._tell((f"the labels stay as they are: {error}",))
            self._failures += 1
            return
        if done.written.changed:
            logger.info("labels: %s", done.written.changed)
        self._tell((*done.troubles, *left))
        self._failures = self._failures + 1 if done.troubles else 0

    def _label(self) -> tuple[Round, tuple[str, ...]]:
        if self._collected is None:
            self._collected = self._collector.look()
        return label(self._collected, self._config, self._output), clear(self._others)

    def _tell(self, troubles: tuple[str, ...]) -> None:
        for trouble in troubles:
            if trouble not in self._said:
                logger.warning("%s", trouble)
        if self._said and not troubles:
            logger.info("all that went wrong is over")
        self._said = troubles
