"""Looks at the machine's devices again and again, and at once when a driver reports a fault. None, or no driver, is
normal: the list is empty until there is one. A driver that does not answer is not."""

import asyncio
import logging
from collections.abc import Callable, Collection

from deviceplugin.devices.device_list import Devices
from deviceplugin.devices.other_plugins import OtherPlugins
from deviceplugin.devices.selection import select
from deviceplugin.health.watch import HealthWatch
from deviceplugin.live_config import Settings
from deviceplugin.node_events import NodeEvents, Reason
from edgeshare import detached
from edgeshare.contract.devices import Device
from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.contested import contested
from edgeshare.inventory.sources import Inventories, sources_of
from edgeshare.waiting import first_of

logger = logging.getLogger(__name__)


LOOK_PAUSE_S = 0.05
"""At least this long between two looks: a broken GPU can report a thousand faults a second."""

ANSWER_S = 15.0
"""So long a driver may take for a look. Initialising one that is not kept in memory takes seconds for each GPU."""


class Scan:
    """Keeps ``devices`` as the inventories tell them, and the configuration and other plugins leave them."""

    def __init__(
        self,
        devices: Devices,
        health: HealthWatch,
        settings: Settings,
        held: Callable[[], Collection[str]],
        other_plugins: OtherPlugins,
        node_events: NodeEvents,
    ) -> None:
        """``held`` tells the devices that containers have units of."""
        self._devices = devices
        self._health = health
        self._hurry = asyncio.Event()
        self._settings = settings
        self._held = held
        self._other_plugins = other_plugins
        self._node_events = node_events
        self._reading: asyncio.Future[list[Device]] | None = None
        """A look that is under way: its driver is not to be called beside it."""
        self._inventories = Inventories(())
        self._looked_for: InventoryConfig | None = None
        self._said = ""
        self.found: tuple[Device, ...] = ()
        """All that are there, or were since the start; also those that are not shared."""
        self.troubles: tuple[str, ...] = ()
        """Why something that is there cannot be listed."""

    async def run(self, stop: asyncio.Event, changed: Callable[[], None]) -> None:
        """Looks every interval, at a fault, and when the configuration changes, until ``stop``; calls ``changed`` after
        each look at which something was another than before."""
        loop = asyncio.get_running_loop()
        self._health.listen(lambda: loop.call_soon_threadsafe(self._hurry.set))
        while not stop.is_set():
            reloaded = self._settings.next_change()
            self._hurry.clear()
            await self.look(changed, stop)
            await first_of(stop, timeout_s=LOOK_PAUSE_S)
            await first_of(stop, reloaded, self._hurry, timeout_s=self._settings.now.rescan_s)
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=detached.CLOSE_S)
        for close in (self._health.close, self._inventories.close):
            await detached.close(close)

    async def look(self, changed: Callable[[], None], stop: asyncio.Event) -> bool:
        """Looks once, until ``stop``; whether there was an answer. A driver that gives none within ANSWER_S is broken:
        its devices are not healthy until it does."""
        before = self._health.now
        config, held = self._settings.now, self._held()
        other_plugins = await self._other_plugins.look(asyncio.get_running_loop().time())
        answered = await self._ask(config.inventory, held, stop)
        if not answered and stop.is_set():
            return False
        self._node_events.tell(Reason.DRIVER_BROKEN, self.troubles)
        selection = select(self.found, config, held, contested(self.found, other_plugins))
        self._node_events.tell(Reason.DEVICE_MISSING, selection.faults)
        self._node_events.tell(Reason.DEVICE_CONTESTED, selection.contested)
        if self._devices.set(selection.devices) or self._health.now != before:
            changed()
        return answered

    async def _ask(self, config: InventoryConfig, held: Collection[str], stop: asyncio.Event) -> bool:
        """Finds out which devices there are, until ``stop``; whether the driver answered."""
        # A driver can take its time, and for that long a kubelet's call must not wait.
        if self._reading is None:
            self._reading = detached.call(lambda: self._read(config, held))
        await first_of(stop, self._reading, timeout_s=ANSWER_S)
        if self._reading.done():
            self.found = tuple(self._reading.result())
            self._reading = None
            return True
        if not stop.is_set():
            silence = f"a driver has not answered for {ANSWER_S:g} s: see the node's kernel log (dmesg)"
            self.troubles = (silence,)
            self.found = tuple(self._health.silent(silence))
        return False

    def _read(self, config: InventoryConfig, held: Collection[str]) -> list[Device]:
        if config != self._looked_for:
            self._inventories.close()
            self._inventories = Inventories(sources_of(config))
            self._looked_for = config
        found = self._inventories.devices()
        self.troubles = self._inventories.troubles
        there = ", ".join(f"{device.source} {device.id} ({device.model})" for device in found)
        self._say(f"devices: {there}" if there else f"no device: {'; '.join(self._inventories.absent)}")
        self._health.configure(self._settings.now.health)
        asked = {source.name for source in sources_of(config)}

        def wanted(device: Device) -> bool:
            # One of a source that is no longer asked is listed while containers have it: they run on.
            return device.source in asked or device.id in held

        trouble = "; ".join(self.troubles)
        return self._health.judge(found, trouble, wanted, held, self._inventories.temperature_c)

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            logger.info("%s", text)
