"""Notices that a device of the machine comes, goes, or gets another driver."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

SUBSYSTEMS = ("pci", "usb")


@contextmanager
def device_changes(changed: asyncio.Event) -> Iterator[None]:
    """Sets the event each time, while it is entered. Where the machine tells nobody, the log says so."""
    try:
        # Where it finds no libudev it fails as it is imported; and most runs of the labeller watch nothing.
        import pyudev  # noqa: PLC0415

        # The kernel's own: udev's reach no container, as they stay in the network namespace of the node.
        monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
        for subsystem in SUBSYSTEMS:
            monitor.filter_by(subsystem)
        monitor.start()
    except (ImportError, OSError) as error:
        logger.warning("devices that come and go are noticed only at the next look: %s", error)
        yield
        return

    def read() -> None:
        try:
            while monitor.poll(timeout=0) is not None:
                changed.set()
        except OSError:
            # More than the socket could keep: something certainly changed.
            changed.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(monitor.fileno(), read)
    try:
        yield
    finally:
        loop.remove_reader(monitor.fileno())
