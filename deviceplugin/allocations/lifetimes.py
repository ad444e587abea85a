"""Who is asked whether an allocation lasts (``edgeshare.contract.lifetime`` has the rule): its pod, by the uid, at the
API server, and its clients, at the manager. What is over is taken back by ``admission.comparison``."""

import asyncio
import logging
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from deviceplugin.allocations.manager_client import Manager
from deviceplugin.pods.pod_spec import is_over
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.units.ledger import Allocation, Owner
from edgeshare.contract.errors import EdgeshareError
from edgeshare.contract.lifetime import Doubt, has_ended, lasts_unasked
from edgeshare.kube.kube import Kube
from edgeshare.kube.threaded import ask
from edgeshare.log_trouble import Trouble

logger = logging.getLogger(__name__)

SETTLE_S = 30
"""After its start a kubelet lists no pods for as long as it does not know them: 10 s are usual."""


@dataclass
class Lasting:
    """The allocations that last though the kubelet does not say that they are held."""

    allocations: list[Allocation] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    """The ids of those with clients."""

    @property
    def idle(self) -> list[Allocation]:
        """The allocations without clients."""
        return [each for each in self.allocations if each.id not in self.running]


class Lifetimes:
    """Whether allocations last. Without an API server the kubelet's word decides, once it has had time to know its
    pods, and the clients."""

    def __init__(self, kube: Kube | None, pods: BoundPods | None, manager: Manager) -> None:
        self._kube = kube
        self._pods = pods
        self._manager = manager
        self.settled_at_s = math.inf
        self._clients_unknown = Trouble(logger, "taking allocations of pods that are over for unused")

    def kubelet_started(self) -> None:
        """From now on its list may be short for a while."""
        self.settled_at_s = asyncio.get_running_loop().time() + SETTLE_S

    async def is_over(self, owner: Owner) -> bool:
        """Whether the pod of an owner that the kubelet does not list has really ended. Raises Unavailable where the API
        server cannot be asked."""
        if self._kube is None:
            return asyncio.get_running_loop().time() >= self.settled_at_s
        known = self._pods.now(owner.namespace, owner.pod, owner.pod_uid) if self._pods is not None else None
        if known is not None and is_over(known.json, owner.pod_uid):
            return True
        over = is_over(await ask(self._kube.pod, owner.namespace, owner.pod), owner.pod_uid)
        if over and known is not None:
            # As long as the watch still tells of it, it must not be taken for the next pod of its name.
            known.ended = True
        return over

    async def having_clients(self) -> set[str]:
        """The allocations whose processes run: those of a pod that was deleted by force can outlive it."""
        try:
            found = await self._manager.having_clients()
        except EdgeshareError as error:
            # Anybody may use that socket up: then the kubelet's and the API server's word has to do.
            self._clients_unknown.fails(error)
            return set()
        self._clients_unknown.over()
        return found

    async def lasting(self, doubtful: Collection[Allocation]) -> Lasting:
        """Which of these last, of which the kubelet offers units or hands them out. Raises Unavailable where the
        API server cannot be asked: see ``in_doubt``."""
        if not doubtful:
            return Lasting()
        running = await self.having_clients()
        found = []
        for each in doubtful:
            has_clients = each.id in running
            over = None if has_clients else await self._pod_is_over(each)
            if not has_ended(Doubt.OFFERED, has_clients=has_clients, pod_is_over=over):
                found.append(each)
        return Lasting(found, running)

    async def _pod_is_over(self, allocation: Allocation) -> bool | None:
        """None where nobody can say: with no API server there is no uid."""
        whose = allocation.whose
        return None if self._kube is None or whose is None else await self.is_over(whose)


def in_doubt(doubtful: Iterable[Allocation]) -> Lasting:
    """Which of these count as lasting while the API server cannot be asked."""
    found = [
        each for each in doubtful if lasts_unasked(each.owner is not None, each.whose is not None and each.whose.listed)
    ]
    return Lasting(found, {each.id for each in found})
