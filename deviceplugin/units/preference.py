"""Which units go well together: a part of a device from one device, whole devices whole, and packed.

A part goes to the fullest device that still has room for it, so that whole devices stay free for those who
need them. A bad choice where evenness counts for more than room: the emptiest device would run cooler and
wait less.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from edgeshare.contract.units import UNITS_PER_DEVICE, parse_unit_id

UnitsOfDevices = dict[str, set[str]]


def by_device(unit_ids: Iterable[str]) -> UnitsOfDevices:
    """Units grouped by their device; raises InvalidRequest for an id that is none of ours."""
    grouped: defaultdict[str, set[str]] = defaultdict(set)
    for unit_id in unit_ids:
        grouped[parse_unit_id(unit_id)[0]].add(unit_id)
    return dict(grouped)


def choose_units(
    available: Collection[str],
    must_include: Collection[str],
    held: Collection[str],
    size: int,
    device_order: Sequence[str],
) -> list[str]:
    """``size`` of the available units, sorted, or none at all where no choice would be right.

    ``must_include`` comes from an earlier container of the same pod. None of ``held`` is chosen but for
    those: live containers have them, whatever the kubelet offers. Devices that tie are taken in
    ``device_order``. Raises InvalidRequest for an id that is none of ours.
    """
    required = set(must_include)
    free = by_device((set(available) - set(held)) | required)
    rank = {device_id: place for place, device_id in enumerate(device_order)}
    candidates = sorted(free, key=lambda device_id: (rank.get(device_id, len(rank)), device_id))
    bound = set(by_device(required))
    if size < UNITS_PER_DEVICE:
        return _part(candidates, free, required, bound, size)
    return _whole(candidates, free, bound, size)


def _part(candidates: list[str], free: UnitsOfDevices, required: set[str], bound: set[str], size: int) -> list[str]:
    fitting = [device_id for device_id in candidates if len(free[device_id]) >= size and bound <= {device_id}]
    if not fitting or len(required) > size or size < 1:
        return []
    device_id = min(fitting, key=lambda candidate: len(free[candidate]))
    rest = sorted(free[device_id] - required)
    return sorted([*required, *rest[: size - len(required)]])


def _whole(candidates: list[str], free: UnitsOfDevices, bound: set[str], size: int) -> list[str]:
    count, rest = divmod(size, UNITS_PER_DEVICE)
    whole = [device_id for device_id in candidates if len(free[device_id]) == UNITS_PER_DEVICE]
    chosen = [*(d for d in whole if d in bound), *(d for d in whole if d not in bound)][:count]
    if rest or len(chosen) < count or not bound <= set(chosen):
        return []
    return sorted(unit_id for device_id in chosen for unit_id in free[device_id])
