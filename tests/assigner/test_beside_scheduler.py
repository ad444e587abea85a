"""A replica beside a kube-scheduler in its pod, which asks it and says by its Lease whether it leads."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.assigner.replicas import ASKED, PROBE_S, SAFETY_S, Replica, Replicas

RENEW_S = 0.5
"""Between two renewals: a tenth of what the replica's Lease is good for."""

Where = dict[str, str]


def renew(server: ApiServer, lease: Where, who: str) -> None:
    """As kube-scheduler takes a Lease, and keeps it."""
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    spec = {"holderIdentity": who, "renewTime": datetime.now(UTC).isoformat(timespec="microseconds")}
    held = json.dumps({**kind, "metadata": lease, "spec": spec})
    done(server.kubectl("apply", "--server-side", "--force-conflicts", "-f=-", stdin=held))


@asynccontextmanager
async def held(server: ApiServer, lease: Where, who: str) -> AsyncIterator[None]:
    """Somebody keeps it meanwhile."""
    over = asyncio.Event()

    async def keep() -> None:
        while not over.is_set():
            await asyncio.to_thread(renew, server, lease, who)
            await asyncio.sleep(RENEW_S)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(keep())
        try:
            yield
        finally:
            over.set()


async def until_answered(replica: Replica, status: int, said: str = "") -> None:
    """Returns when filter is answered so; a machine that stood still may have let a Lease run out meanwhile."""
    async with asyncio.timeout(SAFETY_S):
        while True:
            answered, text = await replica.ask("filter", ASKED)
            if answered == status and said in str(text):
                return
            await asyncio.sleep(PROBE_S)


async def test_it_leads_while_the_scheduler_does(replicas: Replicas, server: ApiServer, lease: Where) -> None:
    ours, others = f"{os.uname().nodename}_1", f"not-{os.uname().nodename}_2"
    replica = await replicas.start(kubeconfig=str(server.kubeconfig), scheduler_lease=lease)
    await replica.until_ready(503, "this replica does not lead: none does")
    async with held(server, lease, others):
        # Ready for the time when it is asked: its pod must not look broken for as long as another leads.
        await replica.until_ready(200, f"stands by: {others} leads")
        await until_answered(replica, 503, f"this replica does not lead: {others} does")
    async with held(server, lease, ours):
        await replica.until_ready(200, "ok")
        await until_answered(replica, 200)
    await asyncio.to_thread(renew, server, lease, "")
    await until_answered(replica, 503, "this replica does not lead: none does")
    # A scheduler that is started anew in the same pod has another name for itself.
    async with held(server, lease, f"{os.uname().nodename}_3"):
        await replica.until_ready(200, "ok")
    assert await replica.end(signal.SIGTERM) == 0


async def test_a_lease_that_nobody_renews_is_nobodys(replicas: Replicas, server: ApiServer, lease: Where) -> None:
    others = f"not-{os.uname().nodename}_2"
    replica = await replicas.start(kubeconfig=str(server.kubeconfig), scheduler_lease=lease)
    async with held(server, lease, f"{os.uname().nodename}_1"):
        await replica.until_ready(200, "ok")
    await until_answered(replica, 503, "none does")
    async with held(server, lease, others):
        await replica.until_ready(200, f"stands by: {others} leads")
    # Its pod is gone, and its name still stands there.
    await replica.until_ready(503, "this replica does not lead: none does")
