"""Writes a pod's assignment where nobody else did, because there is no cluster part; and says it where somebody edits
one, which changes nothing. Neither holds up a container."""

import asyncio
from collections.abc import Sequence

from deviceplugin.allocations.store import Store
from deviceplugin.cluster.node import COMPONENT
from deviceplugin.pods.pending_pods import BoundPod
from deviceplugin.pods.pod_spec import asking_containers, assignment_text
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.retry_loop import keep
from deviceplugin.units.preference import by_device
from edgeshare.contract.assignment import write_assignment
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import GPU_ASSIGNMENT
from edgeshare.kube.kube import Kube
from edgeshare.kube.messages import Failed, Refused
from edgeshare.kube.threaded import ask

REASON = "AssignmentEdited"

FAILURES_MAX = 10
"""In one look: an API server that fails for so many is left alone until the next one."""


class Annotating:
    """The annotation `edge/gpu-assignment` of the node's pods."""

    def __init__(self, kube: Kube, pods: BoundPods, stores: Sequence[Store]) -> None:
        self._kube = kube
        self._pods = pods
        self._stores = stores
        self._told: dict[str, str] = {}
        """By a pod's uid: the edit that was told last."""
        self._failed: list[str] = []
        """The uids of those for which it failed, in that order: their turn comes when the others have had theirs."""

    async def run(self, stop: asyncio.Event) -> None:
        """Looks at each change of pods or allocations, until ``stop``."""
        await keep(self._look, self._next_changes, "assignments are not written", stop)

    def _next_changes(self) -> tuple[asyncio.Event, ...]:
        return self._pods.next_change(), *(store.next_change() for store in self._stores)

    async def _look(self) -> None:
        here = {pod.uid for pod in self._pods}
        self._told = {uid: text for uid, text in self._told.items() if uid in here}
        self._failed = [uid for uid in self._failed if uid in here]
        turns = {uid: turn for turn, uid in enumerate(self._failed, start=1)}
        failures: list[Unavailable] = []
        for pod in sorted(self._pods, key=lambda pod: turns.get(pod.uid, 0)):
            if pod.uid in turns:
                self._failed.remove(pod.uid)
            try:
                await self._look_at(pod)
            except Unavailable as error:
                # It must not keep the others from theirs. An API server that does not answer is not asked for each.
                self._failed.append(pod.uid)
                failures.append(error)
                if len(failures) == FAILURES_MAX or not isinstance(error, Refused | Failed):
                    break
        if failures:
            # As long as the same ones last it is the same one of them, so that the log has it once.
            raise min(failures, key=str)

    async def _look_at(self, pod: BoundPod) -> None:
        if pod.is_over:
            return
        text = self._as_allocated(pod)
        if text is not None and assignment_text(pod.json) is None:
            namespace, name = pod.name
            if await ask(self._kube.annotate_pod, namespace, name, pod.uid, {GPU_ASSIGNMENT: text}):
                pod.bound = text
        elif pod.edited is not None and pod.edited not in (text, self._told.get(pod.uid)):
            await self._tell(pod, pod.edited)

    def _as_allocated(self, pod: BoundPod) -> str | None:
        """The assignment that its allocations make, once all of its containers have theirs."""
        assignment = {}
        for store in self._stores:
            found = {}
            for allocation in store.ledger:
                for owner in (allocation.applicant, allocation.owner):
                    if owner is not None and owner.pod_uid == pod.uid:
                        found[owner.container] = tuple(sorted(by_device(allocation.unit_ids)))
            names = [name for name, _, listed in asking_containers(pod.json, store.kind) if listed or name in found]
            if any(name not in found for name in names):
                return None
            if names:
                assignment[store.kind.accelerator] = {name: found[name] for name in names}
        return write_assignment(assignment) if assignment else None

    async def _tell(self, pod: BoundPod, text: str) -> None:
        namespace, name = pod.name
        bound = f"it was bound with {pod.bound}" if pod.bound is not None else "it was bound with none"
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": pod.uid}
        message = f"annotation {GPU_ASSIGNMENT} was edited ({bound}): that changes nothing, make the pod anew"
        await ask(self._kube.event, COMPONENT, about, True, REASON, message[:1000])
        self._told[pod.uid] = text
