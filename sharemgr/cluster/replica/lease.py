"""A Lease, which one replica at a time holds: taken whenever it is to be had, renewed while it is held, and given back.

As in client-go (tools/leaderelection), nobody compares clocks: a Lease is anybody's when it was seen unchanged for as
long as it lasts, and who writes it says which version of it was read."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import STUMBLES, Json
from edgeshare.kube.messages import Conflicting, Refused

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Whole seconds, as the Lease has them, in falling order, and at least 1."""

    lease_s: int
    """Unrenewed for so long, it is anybody's."""
    renew_s: int
    """Its holder gives up after so long without a renewal."""
    retry_s: int
    """Between two attempts to have it, or to renew it."""


def leases_path(namespace: str) -> str:
    """Where a namespace's Leases lie."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def holder_of(lease: Json) -> str:
    """Who holds it; empty: nobody."""
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


class Lease:
    """One that this process wants to hold."""

    def __init__(
        self,
        calls: Calls,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes,
        renewed: Callable[[float], None],
        held_by: Callable[[str], None],
    ) -> None:
        """``renewed`` is called each time that the Lease became or stayed ours, with the monotonic time in seconds at
        which that was asked for; ``held_by`` with whoever else is found to hold it."""
        self._calls = calls
        self._folder = leases_path(namespace)
        self._path = f"{self._folder}/{name}"
        self._new: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
        self._identity = identity
        self._times = times
        self._renewed = renewed
        self._held_by = held_by
        self._writing = asyncio.Lock()
        self._over = False
        self._seen: Json | None = None
        """What it said as it was read last, since ``_seen_s``."""
        self._seen_s = 0.0
        self._said: set[bool] = set()
        """Since it was reached last: that the API server is away (False), that it refuses what it is asked (True)."""

    async def take(self) -> None:
        """Takes and renews it, until cancelled."""
        while True:
            try:
                await self._attempt()
            except Conflicting:
                # Another was quicker.
                self._reached()
            except STUMBLES as error:
                # One that is away says it in other words at each attempt: no connection, no answer in time, 503.
                refuses = isinstance(error, Refused)
                if refuses not in self._said:
                    self._said.add(refuses)
                    logger.warning("the Lease is not reached: %s", error)
            else:
                self._reached()
            await asyncio.sleep(self._times.retry_s)

    async def give_back(self) -> None:
        """Asks for it no more, and leaves it to the others at once where it is ours. Raises Unavailable where it cannot
        be given back: it is anybody's when it has run out."""
        # What is being written now is waited for: it would make it ours again.
        async with self._writing:
            self._over = True
        try:
            lease = await self._ask("GET", self._path)
            if lease is not None and holder_of(lease) == self._identity:
                await self._ask("PUT", self._path, {**lease, "spec": {**lease["spec"], "holderIdentity": ""}})
        except Conflicting:
            # It is another's by now.
            return
        except Unavailable as error:
            raise Unavailable(f"Lease {self._path} cannot be given back: {error}") from error

    async def _attempt(self) -> None:
        """Raises one of STUMBLES where it cannot be read or written."""
        lease = await self._ask("GET", self._path)
        if lease is None:
            await self._write("POST", self._folder, self._new)
            return
        if (spec := lease.get("spec") or {}) != self._seen:
            self._seen, self._seen_s = spec, monotonic()
        holder = holder_of(lease)
        if holder and holder != self._identity:
            self._held_by(holder)
            if monotonic() < self._seen_s + self._times.lease_s:
                return
        await self._write("PUT", self._path, lease)

    async def _write(self, method: str, path: str, lease: Json) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {**(lease.get("spec") or {}), "leaseDurationSeconds": self._times.lease_s, "renewTime": now}
        if spec.get("holderIdentity") != self._identity:
            spec |= {"holderIdentity": self._identity, "acquireTime": now}
        async with self._writing:
            if self._over:
                return
            # Before it is asked: how long it has held when the answer comes is not known.
            began_s = monotonic()
            if await self._ask(method, path, {**lease, "spec": spec}) is not None:
                self._renewed(began_s)

    async def _ask(self, method: str, path: str, body: Json | None = None) -> Json | None:
        # No attempt takes longer than half of the time there is, as in client-go.
        return await self._calls.call(method, path, body, timeout_s=self._times.renew_s / 2)

    def _reached(self) -> None:
        if self._said:
            self._said.clear()
            logger.info("the Lease is reached again")
