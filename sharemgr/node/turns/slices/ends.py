"""When the slices of a node's devices end: together, where that is near."""

from edgeshare.contract.units import NS_PER_MS

SLACK_NS = NS_PER_MS
"""By how much a slice may be shorter or longer to end with another device's: as much as one that ends in the middle of
a kernel of this length is longer anyway."""


class Ends:
    """The ends of the slices that last, one for each device.

    To wake costs a manager several times as much as what it then does for one device, as nothing of it is in the
    processor's caches any more. Slices of one length soon end all together, since each is placed by those before it.
    """

    def __init__(self) -> None:
        self._ends_ns: dict[object, int] = {}

    def place(self, device: object, at_ns: int) -> int:
        """When a device's next slice ends, which should be at this time: with the nearest of the others, if one is
        within SLACK_NS of it."""
        nearest_ns, distance_ns = at_ns, SLACK_NS + 1
        for other, end_ns in self._ends_ns.items():
            if abs(end_ns - at_ns) < distance_ns and other is not device:
                nearest_ns, distance_ns = end_ns, abs(end_ns - at_ns)
        self._ends_ns[device] = nearest_ns
        return nearest_ns
