"""Processes that are no clients any more, and what the driver says that they still have."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from edgeshare.contract.units import NS_PER_S
from sharemgr.node.sockets.peers import running

FREED_SOON_NS = NS_PER_S
"""So long after a process has ended it is looked more than once a second whether its memory is freed. What takes a
driver longer is a kernel that does not end, or the process runs on without its connection."""

Listed = Mapping[str, Mapping[int, int | None]]
"""By device id, of those whose processes the driver lists: bytes by pid, None where it does not say."""


@dataclass(frozen=True)
class Dying:
    """A process whose connection ended and whose memory the driver may not have freed yet."""

    pid: int
    started: str | None
    """As ``process_start`` told when the connection ended; None: it had ended, or is not to be seen."""
    ended_at_ns: int

    def just_ended(self, now_ns: int) -> bool:
        """Whether that was a moment ago."""
        return self.ended_at_ns > now_ns - FREED_SOON_NS

    def freed(self, device_ids: Collection[str], listed: Listed) -> bool:
        """Whether it has no memory of these devices any more. Where the driver does not list who has, it has until it
        ends."""
        if any(self.pid in processes for processes in listed.values()):
            return False
        return all(device_id in listed for device_id in device_ids) or not running(self.pid, self.started)


def bytes_told(listed: Listed, pid: int) -> dict[str, int]:
    """By device id what a process has, as far as the driver says it: nothing where it lists others only."""
    told = {device_id: processes.get(pid, 0) for device_id, processes in listed.items()}
    return {device_id: size_bytes for device_id, size_bytes in told.items() if size_bytes is not None}
