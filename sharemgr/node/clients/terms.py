"""What all clients of one allocation have in common."""

from collections.abc import Callable
from dataclasses import dataclass

from cuda_hook import wire
from sharemgr.node.clients.budget import Part, Places, Queue
from sharemgr.node.clients.device import DeviceArbiter
from sharemgr.node.clients.offences import Offences
from sharemgr.node.memory.allowances import Memory


@dataclass(frozen=True)
class Terms:
    """Of one allocation."""

    allocation_id: str
    device_ids: tuple[str, ...]
    accelerator: wire.Accelerator
    welcome: wire.Welcome
    device: DeviceArbiter
    memory: Memory
    offences: Offences
    records: Part
    """How many records its clients may send, all together, beside those of the other allocations."""
    paused: Queue
    """Its clients that are not read until it has paid for what they said."""
    connections: Part
    """How many processes may connect, likewise."""
    places: Places
    """How many may be in at a time, likewise."""
    inbox: wire.Inbox
    """Where all clients' records are received, one at a time."""
    look_soon: Callable[[], None] = lambda: None
    """Has the driver asked soon what its clients' processes use: one's answer waits for that."""
    device_lines: tuple[str, ...] = ()
    """Lines of hook.conf that say by what paths a program reaches its devices, where the hook has to know."""
