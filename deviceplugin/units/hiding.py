"""Which free units a kubelet had better not hear of, where nobody places pods by device.

A scheduler adds a node's free units up over its devices, and a part of a device has to come from one: where two have 40
free each it would send a pod of 50 there, to fail. So as many are told as any one container can be given, whatever it
asks for, and the others are hidden. A bad choice where somebody knows each device: what was chosen may be hidden.
"""

from collections.abc import Collection, Mapping

from edgeshare.contract.units import NS_PER_S, UNITS_PER_DEVICE

SETTLE_NS = NS_PER_S
"""Pods that were bound at once, by a sum that was told before, are admitted one after another, within some milliseconds
each: what is meant for the last of them is not to be hidden at the first."""


def placeable(free: Mapping[str, Collection[str]], memory_percent: Mapping[str, int]) -> frozenset[str]:
    """Of the free units of each device those to be told: any part of a device that is no more than all of them is there
    on one device, and any number of whole devices. All of them, where there is one device.

    Where devices are wholly free, any part fits on one of them, so that as many more may be told as make no further
    device. Where none is, those of one device are. ``memory_percent`` is what devices have left of their memory: of
    those that are not wholly free the one goes first that has most room by units and memory together. Devices that tie
    stay in the order of ``free``.
    """

    def room(device_id: str) -> tuple[bool, int, int]:
        units = len(free[device_id])
        return units == UNITS_PER_DEVICE, min(units, memory_percent.get(device_id, UNITS_PER_DEVICE)), units

    order = sorted(free, key=room, reverse=True)
    whole = sum(len(units) == UNITS_PER_DEVICE for units in free.values())
    count = UNITS_PER_DEVICE * (whole + 1) - 1 if whole else sum(len(free[device_id]) for device_id in order[:1])
    return frozenset([unit for device_id in order for unit in sorted(free[device_id])][:count])


class Hidden:
    """The units that are hidden: fewer of them at once, more only when for a while nothing was handed out or came
    free. What is to be told in exchange for what is to be hidden waits for that, too: together they would be more than
    any one container can be given."""

    def __init__(self) -> None:
        self.units: frozenset[str] = frozenset()
        self._free: frozenset[str] | None = None
        self._quiet_since_ns = 0

    def look(self, free: frozenset[str], wanted: frozenset[str], now_ns: int) -> int | None:
        """Takes in which units are free, and which of them had better be hidden; returns in how many ns it is to be
        told again if nothing changes, or None: not at all."""
        if free != self._free:
            self._free, self._quiet_since_ns = free, now_ns
        left_ns = self._quiet_since_ns + SETTLE_NS - now_ns
        self.units = wanted if left_ns <= 0 or wanted <= self.units else self.units & free
        return left_ns if self.units != wanted else None
