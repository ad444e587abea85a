"""Whose units these are and what that container asked for: PodResources says the first, the API server the
second.

Where no API server is configured, containers get the defaults, and what the kubelet no longer lists is over.
"""

import asyncio
from dataclasses import replace
from typing import Any

from deviceplugin.admission.check import check_assigned
from deviceplugin.allocations.lifetimes import SETTLE_S, Lifetimes
from deviceplugin.pods.pending_pods import BoundPod, allocated, applicants, may_have
from deviceplugin.pods.pod_spec import asks_later, assignment_text, init_container, is_over, parse_terms, slim
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.pods.podresources import Listings
from deviceplugin.units.ledger import Allocation, Ledger, Owner, Terms
from deviceplugin.units.owners import Listing, find_owner, shows
from edgeshare.contract.accelerator_kind import AcceleratorKind
from edgeshare.contract.errors import InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.contract.units import UNITS_PER_DEVICE, parse_request_percent
from edgeshare.kube.kube import Kube
from edgeshare.kube.threaded import ask


class Identity:
    """Finds out whose units are. ``node_name`` is needed with an API server only."""

    def __init__(
        self,
        listings: Listings,
        ledger: Ledger,
        kube: Kube | None,
        node_name: str,
        pods: BoundPods | None,
        kind: AcceleratorKind,
        lifetimes: Lifetimes,
    ) -> None:
        self._listings = listings
        self._ledger = ledger
        self._kube = kube
        self._node_name = node_name
        self._pods = pods
        self._kind = kind
        self._lifetimes = lifetimes

    async def identify(self, allocation: Allocation) -> Allocation:
        """The allocation with its owner and terms as of now. What is known of the same owner already, stays.

        Raises NotFound where nobody can be found, NoRoom where the kubelet gave the units to several pods,
        InvalidRequest for a pod that asks for what cannot be, and Unavailable where kubelet or API server
        cannot be asked. Nothing is waited for between the look at what others have and the return.
        """
        owner, pod = await self._owner(allocation)
        if owner == allocation.owner and allocation.terms is not None:
            return allocation
        if self._kube is None:
            _, units_each = parse_request_percent(len(allocation.unit_ids))
            terms = Terms(request_percent=units_each, hooked=units_each < UNITS_PER_DEVICE)
            return replace(allocation, owner=owner, terms=terms, memory_mib=0)
        if pod is None:
            pod = await ask(self._kube.pod, owner.namespace, owner.pod)
        if pod is None:
            raise NotFound(f"pod {owner.namespace}/{owner.pod} is not there any more")
        return self._with_terms(allocation, owner, pod)

    async def is_nobodys(self, allocation: Allocation, listing: Listing) -> bool:
        """Whether an allocation of which nobody is listed was never taken by anyone, as when kubelet or plugin was
        killed over it, or its pod was refused after it. In doubt it was: between Allocate's answer and the kubelet's
        next list, and of an init container until it starts, nobody can tell. Raises Unavailable where the API server
        cannot be asked."""
        if self._kube is None or self._pods is None:
            # The kubelet's word alone; it takes an answer in within milliseconds.
            settled_s = max(self._lifetimes.settled_at_s, self._listings.last_allocate_s + SETTLE_S)
            return asyncio.get_running_loop().time() >= settled_s
        if allocation.applicant is not None and not await self._lifetimes.is_over(allocation.applicant):
            return False
        await self._pods.read_all()
        has_units = allocated(self._ledger)
        size = len(allocation.unit_ids)
        # One that only the kubelet knows is a static pod whose mirror is still to come, or was deleted by force.
        unwatched = listing.keys() - {pod.name for pod in self._pods}
        return not unwatched and not any(may_have(pod, size, has_units, self._kind) for pod in self._pods)

    async def _owner(self, allocation: Allocation) -> tuple[Owner, dict[str, Any] | None]:
        """Whose it is, and that one's pod if it was read."""
        known = allocation.owner
        if known is not None and await self._still_has(known, allocation.unit_ids):
            return known, None
        found = find_owner(allocation.unit_ids, await self._listings.list())
        if found is not None and found.listed:
            return found, None
        return await self._init_owner(allocation, found)

    async def _still_has(self, owner: Owner, unit_ids: frozenset[str]) -> bool:
        try:
            containers = await self._listings.get(owner.namespace, owner.pod)
        except Unavailable:
            # A kubelet whose feature gate KubeletPodResourcesGet is off: the whole list says the same.
            return False
        return shows(containers, owner, unit_ids)

    async def _init_owner(self, allocation: Allocation, later: Owner | None) -> tuple[Owner, dict[str, Any] | None]:
        """The init container that has these units, and its pod; ``later`` is of the same pod, if a later container
        takes over."""
        size = len(allocation.unit_ids)
        if self._kube is None:
            if later is None:
                raise NotFound(f"the kubelet lists nobody with these {size} units")
            return replace(later, container="init"), None
        if later is not None:
            pod = await ask(self._kube.pod, later.namespace, later.pod)
            candidates = [pod] if pod else []
        else:
            pods = await ask(self._kube.pods_on, self._node_name)
            taken = {held.owner.pod_uid for held in self._ledger if held.owner and held.id != allocation.id}
            candidates = [
                pod
                for pod in pods
                if not is_over(pod, "") and not asks_later(pod, self._kind) and pod["metadata"]["uid"] not in taken
            ]
        owners = [
            (
                Owner(
                    pod["metadata"]["namespace"], pod["metadata"]["name"], name, pod["metadata"]["uid"], listed=False
                ),
                pod,
            )
            for pod in candidates
            if (name := init_container(pod, size, self._kind))
        ]
        if not owners:
            raise NotFound(f"neither the kubelet nor the API server knows who has these {size} units")
        if len(owners) > 1:
            names = ", ".join(sorted(str(owner) for owner, _ in owners))
            raise NoRoom(f"these {size} units may be of any of {names}: start them one after another")
        return owners[0]

    def _with_terms(self, allocation: Allocation, owner: Owner, pod: dict[str, Any]) -> Allocation:
        owner = replace(owner, pod_uid=pod["metadata"]["uid"])
        try:
            terms = parse_terms(pod, owner.container, len(allocation.unit_ids), self._kind)
        except InvalidRequest as error:
            raise InvalidRequest(f"pod {owner.namespace}/{owner.pod}: {error}") from error
        self._check_assignment(allocation, owner, pod)
        return replace(allocation, owner=owner, applicant=owner, terms=terms, memory_mib=terms.memory_mib)

    def _check_assignment(self, allocation: Allocation, owner: Owner, pod: dict[str, Any]) -> None:
        """Where its admission knew whose they are, they were checked then. Raises NoRoom where it did not, and they
        are of another device than this owner is assigned."""
        if allocation.applicant is not None and allocation.applicant.is_same(owner):
            return
        known = self._pods.now(owner.namespace, owner.pod, owner.pod_uid) if self._pods is not None else None
        bound = known if known is not None else BoundPod(slim(pod), assignment_text(pod))
        for applicant in applicants(replace(bound, ended=False), lambda other: False, self._kind):
            if applicant.owner.container == owner.container:
                if applicant.fault:
                    raise InvalidRequest(applicant.fault)
                check_assigned(applicant, allocation.unit_ids)
