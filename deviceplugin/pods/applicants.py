"""Who is being admitted, and what it was assigned: of the pods that the kubelet lists, the one with a container that
has no units yet and asks for just as many."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from deviceplugin.pods.pending_pods import Applicant, IsAllocated, allocated, applicants, is_past
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.units.ledger import Allocation, Ledger, Owner
from deviceplugin.units.owners import Listing
from edgeshare.contract.accelerator_kind import AcceleratorKind
from edgeshare.contract.errors import InvalidRequest, NoRoom, Unavailable
from edgeshare.kubelet.podresources import Units

Get = Callable[[str, str], Awaitable[Units | None]]
"""One pod's containers, as the kubelet knows it; harmless at any time."""


class Applicants:
    """The containers that are still to get units. Without an API server none is known."""

    def __init__(self, pods: BoundPods | None, ledger: Ledger, get: Get, kind: AcceleratorKind) -> None:
        self._pods = pods
        self._ledger = ledger
        self._get = get
        self._kind = kind

    async def find(self, listing: Listing, size: int, forgotten: Collection[Allocation]) -> list[Applicant]:
        """The containers that may be being given ``size`` units: of those that lack units, or else of those whose
        allocations the kubelet has ``forgotten``: it admits such a container anew when that starts again.

        Raises Unavailable where the API server has to be asked, and cannot be.
        """
        if self._pods is None:
            return []
        found = await self._find(self._pods, listing, size, allocated(self._ledger))
        if not found:
            # Somebody is being admitted: perhaps a pod with the name of one that was, or was not, there before.
            await self._pods.read_all()
            found = await self._find(self._pods, listing, size, allocated(self._ledger))
        # One that only the kubelet knows, such as a static pod, may be asking, too.
        if not found and forgotten and not listing.keys() - {pod.name for pod in self._pods}:
            found = await self._find(self._pods, listing, size, self._allocated_but(forgotten))
        return found

    async def skipped(self, unit_ids: Collection[str], forgotten: Collection[Allocation]) -> list[Applicant]:
        """Whose units these may be, if the kubelet asked for no preference because no others are left; or it has
        ``forgotten`` that it gave just these to a container, which starts again. None where nobody that is known was
        assigned any device.

        Raises Unavailable as ``find`` does, and NoRoom where it knows none of those that wait.
        """
        if self._pods is None:
            return []
        found = await self._known(self._pods, len(unit_ids))
        return found or await self._again(unit_ids, forgotten)

    def others(self, applicant: Applicant | None) -> list[Applicant]:
        """All containers that are still to get units but this one."""
        return [each for each in self._waiting() if applicant is None or each.owner != applicant.owner]

    def refuse(self, owner: Owner | None) -> None:
        """The pod of this container has failed or is over, which is final."""
        if owner is None or self._pods is None:
            return
        pod = self._pods.now(owner.namespace, owner.pod, owner.pod_uid)
        if pod is not None:
            pod.ended = True

    async def _find(self, pods: BoundPods, listing: Listing, size: int, has_units: IsAllocated) -> list[Applicant]:
        names = [name for name, containers in listing.items() if not (containers and all(containers.values()))]
        found = []
        for pod in await pods.find(names, lambda pod: is_past(pod, listing, has_units, self._kind)):
            held = listing.get(pod.name, {})

            def has_some(owner: Owner, held: Units = held) -> bool:
                return bool(held.get(owner.container)) or has_units(owner)

            fitting = [each for each in applicants(pod, has_some, self._kind) if each.percent == size]
            found.extend(fitting[:1])
        return found

    async def _known(self, pods: BoundPods, size: int) -> list[Applicant]:
        """The applicants for ``size`` units. If any was assigned devices, those of pods that the kubelet knows: of the
        one that it means the watch may still have to tell. Raises Unavailable, NoRoom where it knows none of them."""
        ruled_out: set[Owner] = set()

        def waiting(_: BoundPods) -> list[Applicant]:
            return [each for each in self._waiting(size) if each.owner not in ruled_out]

        while found := await pods.until_some(waiting):
            if any(each.is_assigned for each in found):
                ruled_out |= {each.owner for each in found if not await self._may_be(each.owner)}
                found = [each for each in found if each.owner not in ruled_out]
            if found:
                return found
        if ruled_out:
            raise NoRoom(f"no bound pod is known that waits for {size} units: make the pod anew")
        return []

    def _waiting(self, size: int | None = None) -> list[Applicant]:
        has_units = allocated(self._ledger)
        waiting = [each for pod in self._pods or () for each in applicants(pod, has_units, self._kind)]
        return [each for each in waiting if size in (None, each.percent)]

    async def next_of_pod(self, unit_ids: Collection[str]) -> list[Applicant]:
        """Who takes over the units of an init container: nobody, if its pod is one that the kubelet knows no more."""
        before = [each.applicant for each in self._ledger.touching(unit_ids)]
        uids = {owner.pod_uid if owner is not None and not owner.listed else "" for owner in before}
        pods = [pod for pod in self._pods or () if {pod.uid} == uids]
        has_units = allocated(self._ledger)
        found = [
            each for pod in pods for each in applicants(pod, has_units, self._kind) if each.percent == len(unit_ids)
        ]
        return [each for each in found[:1] if not each.is_assigned or await self._may_be(each.owner)]

    async def _again(self, unit_ids: Collection[str], forgotten: Collection[Allocation]) -> list[Applicant]:
        same = [each for each in forgotten if each.unit_ids == frozenset(unit_ids) and each.whose is not None]
        for whose in [each.whose for each in same]:
            assert whose is not None
            containers = await self._get(whose.namespace, whose.pod)
            pod = self._pods.now(whose.namespace, whose.pod, whose.pod_uid) if self._pods is not None else None
            if pod is not None and containers is not None and not containers.get(whose.container):
                has_units = self._allocated_but(same)
                waiting = applicants(pod, has_units, self._kind)
                return [each for each in waiting if each.owner.container == whose.container]
        return []

    def _allocated_but(self, forgotten: Collection[Allocation]) -> IsAllocated:
        ids = {each.id for each in forgotten}
        return allocated(each for each in self._ledger if each.id not in ids)

    def only(self, found: Sequence[Applicant], size: int) -> Applicant | None:
        """The only one of these that it can be; None where there is none, or it can be several that are assigned
        nothing. Raises InvalidRequest where its assignment is nonsense, NoRoom where it may be one of several that were
        assigned different devices."""
        if len(found) > 1 and any(each.is_assigned for each in found):
            names = ", ".join(sorted(str(each.owner) for each in found))
            raise NoRoom(f"{size} units may be for any of {names}, which are assigned devices: make the pod anew")
        if len(found) != 1:
            return None
        if found[0].fault:
            self.refuse(found[0].owner)
            raise InvalidRequest(found[0].fault)
        return found[0]

    async def _may_be(self, owner: Owner) -> bool:
        """Whether the kubelet knows the pod: it learns of one just before its admission."""
        try:
            return await self._get(owner.namespace, owner.pod) is not None
        except Unavailable:
            return True
