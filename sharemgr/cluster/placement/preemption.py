"""Which pods would have to go so that a pod fits: found per device, and by priority, where kube-scheduler sees one sum
a node."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state.books import Books
from sharemgr.cluster.state.eligibility import has_room, objection, obtainable
from sharemgr.cluster.state.nodes import Device, Node
from sharemgr.cluster.state.pods import SharePod
from sharemgr.cluster.state.request import Ask, Holding, Request, Take


@dataclass(slots=True)
class _Room:
    """What would be free of a device."""

    device: Device
    units: int
    memory_mib: int
    exclusions: Counter[str] = field(default_factory=Counter)

    def free(self, take: Take, exclusion: str) -> None:
        self.units += take.units
        self.memory_mib += take.memory_mib
        self.exclusions[exclusion] -= 1

    def fits(self, ask: Ask) -> bool:
        return has_room(
            *obtainable(self.device, self.units, self.memory_mib),
            ask.units,
            ask.needed_mib(self.device.memory_mib),
        )


def victims(books: Books, pod: SharePod, node: str, proposed: Collection[str]) -> list[str] | None:
    """The uids of pods of lower priority that have to leave the node so that this one fits: none where it fits as it
    is; None where it would not fit without any of them. ``proposed`` are kube-scheduler's victims, which will do where
    they leave devices that can hold it; those without a device have to go for something else that the pod needs.

    As kube-scheduler does it: all of lower priority are taken away, then the most important that can stay are put back.
    """
    if not pod.asks:
        return []
    there = books.ledger.node(node)
    if there is None or pod.fault:
        return None
    holdings = {each.uid: held for each in books.pods_on(node) if (held := books.ledger.bound(each.uid)) is not None}
    lower = [each for each in books.pods_on(node) if each.uid in holdings and each.priority < pod.priority]
    if _fits(books, there, pod.request, []):
        return []
    away = {each.uid: holdings[each.uid] for each in lower}
    if _fits(books, there, pod.request, [away[uid] for uid in proposed if uid in away]):
        return list(proposed)
    if not _fits(books, there, pod.request, away.values()):
        return None
    # Of equals the one with the most units is the first to stay: so the fewest go.
    for each in sorted(lower, key=lambda each: (-each.priority, -each.request.units, each.uid)):
        holding = away.pop(each.uid)
        if not _fits(books, there, pod.request, away.values()):
            away[each.uid] = holding
    return [*away, *(uid for uid in proposed if uid not in holdings)]


def is_being_made_room_for(books: Books, pod: SharePod) -> bool:
    """Whether the pod, which does not fit the node that it is nominated to, will when that one lists what it still does
    of pods that are gone no more: nobody else has to go for it."""
    there = books.ledger.node(pod.nominated)
    if there is None or not pod.request.asks:
        return False
    going = books.going(pod.nominated)
    return bool(going) and not _fits(books, there, pod.request, []) and _fits(books, there, pod.request, going)


def _fits(books: Books, node: Node, request: Request, away: Collection[Holding]) -> bool:
    """Whether the request fits the node without these."""
    return all(_part_fits(books, node, part, away) for part in request.parts)


def _part_fits(books: Books, node: Node, request: Request, away: Collection[Holding]) -> bool:
    is_chosen_by_wish = KINDS[request.kind].is_chosen_by_wish
    by_id = {device.id: _room(node, device) for device in node.of(request.kind)}
    gone: Counter[tuple[str, str]] = Counter()
    for holding in away:
        for take in holding.takes:
            if take.device_id in by_id:
                by_id[take.device_id].free(take, holding.exclusion if is_chosen_by_wish else "")
        if request.affinity and holding.affinity == request.affinity:
            gone.update((holding.node, take.device_id) for take in holding.takes)
    together = books.ledger.together(request.affinity) if request.affinity else {}
    shared = {place for place, parts in together.items() if parts > gone[place]}
    rooms = [
        room
        for room in by_id.values()
        if objection(request, node.inventory.node, room.device, +room.exclusions, shared) is None
    ]
    return _fit_together(rooms, request)


def _fit_together(rooms: Sequence[_Room], request: Request) -> bool:
    """Whether all asks find room beside each other."""
    if sum(max(0, room.units) for room in rooms) < request.units:
        return False
    if any(sum(room.fits(ask) for room in rooms) < ask.devices for ask in set(request.asks)):
        return False
    largest_first, *others = ([request.asks[number] for number in order] for order in request.orders())
    return _fit_in_order(rooms, largest_first, tightest=True) or any(
        _fit_in_order(rooms, asks) for asks in (largest_first, *others)
    )


def _fit_in_order(rooms: Iterable[_Room], asks: Iterable[Ask], tightest: bool = False) -> bool:
    """Whether they fit, each on the first devices with room for it, or on those where it leaves the least."""
    rooms = [replace(room) for room in rooms]
    for ask in asks:
        found = [room for room in rooms if room.fits(ask)]
        if len(found) < ask.devices:
            return False
        if tightest:
            found.sort(key=lambda room: room.units)
        for room in found[: ask.devices]:
            room.units -= ask.units
            room.memory_mib -= ask.needed_mib(room.device.memory_mib)
    return True


def _room(node: Node, device: Device) -> _Room:
    use = node.use.get(device.id)
    if use is None:
        return _Room(device, UNITS_PER_DEVICE, device.memory_mib)
    return _Room(device, *node.free(device), Counter(use.exclusions))
