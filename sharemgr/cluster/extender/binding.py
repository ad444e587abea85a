"""Binding a pod to a node and its GPUs: decided, reserved, and written in one Binding. Where the answer is lost the pod
is read before anything is decided; a reservation ends only when it is sure that its Binding is not, and cannot be,
written any more."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from edgeshare.contract.errors import AlreadyExists, NotFound, Unavailable
from edgeshare.kube.messages import Conflicting, Refused
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.state.pods import SharePod

LANDS_WITHIN_S = 65.0
"""After so long a request whose answer was lost is not carried out any more: kube-apiserver's --request-timeout is a
minute."""

UNSEEN_S = 10.0
"""A Binding that was written and that the watch has not told of for so long is looked up, again and again: its pod may
be gone, and the watch may have missed both."""


class Api(Protocol):
    """What is asked of the API server."""

    async def bind(self, pod: SharePod) -> None:
        """Writes the pod's node and assignment. Raises Conflicting, Refused or Unavailable
        (edgeshare.kube.messages)."""

    async def read(self, namespace: str, name: str) -> SharePod | None:
        """The pod of that name now, None where there is none. Raises Unavailable."""


@dataclass(slots=True)
class Reservation:
    """What a pod is being bound to."""

    pod: SharePod
    since_s: float
    """When it was last written, or read to be bound."""
    in_doubt: bool = False
    """An answer was lost: its Binding may be written, or still be."""


class Binder:
    """Binds pods for one assigner."""

    def __init__(self, assigner: Assigner, api: Api, timeout_s: float, now_s: Callable[[], float]) -> None:
        self._assigner = assigner
        self._books = assigner.books
        self._api = api
        self._timeout_s = timeout_s
        self._now_s = now_s
        self._reservations: dict[str, Reservation] = {}
        """By uid; until the Binding was seen."""
        self._busy: set[str] = set()

    @property
    def in_doubt(self) -> int:
        """How many reservations there are of which nobody knows whether their Binding was written."""
        return sum(each.in_doubt for each in self._reservations.values())

    def reserved(self, uid: str) -> SharePod | None:
        """A pod as its Binding writes it, or was read to be bound; None where nothing is reserved for it."""
        reservation = self._reservations.get(uid)
        return None if reservation is None else reservation.pod

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Binds the pod to that node; also where that was done before. Raises NoRoom with the reason, NotFound,
        AlreadyExists where it is bound to another node, InvalidRequest, Unavailable."""
        if uid in self._busy:
            raise Unavailable(f"pod {namespace}/{name} is being bound already: it is tried again")
        self._busy.add(uid)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._bind(namespace, name, uid, node)
        except TimeoutError as error:
            raise Unavailable(
                f"binding pod {namespace}/{name} to node {node} was not answered within {self._timeout_s:g} s: what "
                "came of it is read when it is tried again"
            ) from error
        finally:
            self._busy.discard(uid)

    async def settle(self) -> None:
        """Looks up what became of Bindings that nobody told of. To be called now and then."""
        for uid, reservation in list(self._reservations.items()):
            if not self._books.is_unseen(uid):
                self._reservations.pop(uid, None)
            elif uid not in self._busy and self._now_s() - reservation.since_s >= UNSEEN_S:
                try:
                    pod = await self._read(reservation.pod)
                except Unavailable:
                    # As much in doubt as before; it stays reserved.
                    continue
                # It may have been written anew meanwhile, or be another one.
                is_same = self._reservations.get(uid) is reservation and uid not in self._busy
                over = self._now_s() - reservation.since_s >= LANDS_WITHIN_S
                if pod is not None and not pod.node and over and is_same:
                    self._give_up(uid)

    async def _bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        reservation = self._reservations.get(uid)
        if reservation is not None and self._books.ledger.is_assumed(uid):
            await self._bind_reserved(reservation, node)
            return
        pod, held = self._assigner.asking(uid), self._books.ledger.bound(uid)
        if pod is None and held is None:
            pod = await self._existing(SharePod(uid, namespace, name))
        bound_to = pod.node if pod is not None and pod.node else (held.node if held is not None else "")
        if bound_to:
            _is_bound(f"{namespace}/{name}", bound_to, node)
            return
        assert pod is not None
        await self._bind_first(pod, node)

    async def _bind_reserved(self, reservation: Reservation, node: str) -> None:
        """What was reserved and may have been written, or may not."""
        pod = await self._read(reservation.pod)
        if pod is None:
            raise NotFound(f"pod {reservation.pod} is gone")
        if pod.node:
            _is_bound(str(pod), pod.node, node)
        elif reservation.pod.node != node:
            raise AlreadyExists(f"pod {pod} may still be bound to node {reservation.pod.node}")
        else:
            await self._write(reservation)

    async def _bind_first(self, pod: SharePod, node: str) -> None:
        """One for which nothing is reserved."""
        if not pod.asks:
            # Of no GPU's: kube-scheduler has these bound here where it was not told which resources are managed.
            await self._api.bind(pod._replace(node=node, assignment=None))
            return
        try:
            await self._write(self._reserve(pod, node))
        except Conflicting:
            # It is another version by now; decided again, once.
            await self._write(self._reserve(await self._existing(pod), node))

    async def _existing(self, pod: SharePod) -> SharePod:
        """The pod as the API server has it; raises NotFound."""
        found = await self._read(pod)
        if found is None:
            raise NotFound(f"there is no pod {pod} with uid {pod.uid} any more")
        return found

    def _reserve(self, pod: SharePod, node: str) -> Reservation:
        placed, holding = self._assigner.decide(pod, node)
        self._books.ledger.assume(holding)
        reservation = self._reservations[pod.uid] = Reservation(placed, self._now_s())
        return reservation

    async def _write(self, reservation: Reservation) -> None:
        """Returns when the pod is bound as reserved. Raises Conflicting where it is certain that this version of it
        will not be, and nothing is reserved any more; otherwise what went wrong."""
        placed = reservation.pod
        reservation.since_s = self._now_s()
        was_in_doubt, reservation.in_doubt = reservation.in_doubt, True
        try:
            await self._api.bind(placed)
        except Unavailable as error:
            pod = await self._read(placed)
            if pod is None:
                raise NotFound(f"pod {placed} is gone") from error
            if pod.node == placed.node:
                return
            if pod.node:
                raise AlreadyExists(f"pod {placed} is bound to node {pod.node} already") from error
            # An earlier request that is still under way carries the old version: with a new one it comes to nothing.
            if isinstance(error, Refused) and (not was_in_doubt or pod.version != placed.version):
                self._give_up(placed.uid)
            raise
        reservation.in_doubt = False
        self._assigner.forget(placed.uid)

    async def _read(self, asked: SharePod) -> SharePod | None:
        """The pod of that uid as it is now, which the ledger is told; None where it is gone. Raises Unavailable."""
        pod = await self._api.read(asked.namespace, asked.name)
        if pod is None or pod.uid != asked.uid:
            self._reservations.pop(asked.uid, None)
            self._books.pod_gone(asked.uid)
            return None
        if pod.node:
            self._books.pod_read(pod)
            self._reservations[pod.uid] = Reservation(pod, self._now_s())
        return pod

    def _give_up(self, uid: str) -> None:
        self._reservations.pop(uid, None)
        # A read may be behind the watch, which has seen it bound by somebody else.
        if self._books.ledger.is_assumed(uid):
            self._books.ledger.release(uid)


def _is_bound(pod: str, bound_to: str, node: str) -> None:
    """Raises AlreadyExists where that is another node than the one that is asked for."""
    if bound_to != node:
        raise AlreadyExists(f"pod {pod} is bound to node {bound_to} already")
