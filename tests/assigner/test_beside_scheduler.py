"""A replica beside a kube-scheduler in its pod, which asks it and says by its Lease whether it leads."""

import asyncio
import json
import os
import signal

from onenode.api_server import ApiServer, done
from replicas import ASKED, Replicas


def hold(server: ApiServer, lease: dict[str, str], who: str) -> None:
    """As kube-scheduler takes a Lease."""
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    held = json.dumps({**kind, "metadata": lease, "spec": {"holderIdentity": who}})
    done(server.kubectl("apply", "--server-side", "--force-conflicts", "-f=-", stdin=held))


async def test_it_leads_while_the_scheduler_does(replicas: Replicas, server: ApiServer, lease: dict[str, str]) -> None:
    ours, others = f"{os.uname().nodename}_1", f"not-{os.uname().nodename}_2"
    replica = await replicas.start(kubeconfig=str(server.kubeconfig), scheduler_lease=lease)
    await replica.until_ready(503, "this replica does not lead: none does")
    await asyncio.to_thread(hold, server, lease, others)
    # Ready for the time when it is asked: its pod must not look broken for as long as another leads.
    await replica.until_ready(200, f"stands by: {others} leads")
    assert await replica.ask("filter", ASKED) == (503, f"this replica does not lead: {others} does\n")
    await asyncio.to_thread(hold, server, lease, ours)
    await replica.until_ready(200, "ok")
    assert (await replica.ask("filter", ASKED))[0] == 200
    await asyncio.to_thread(hold, server, lease, "")
    await replica.said("this replica leads no more: nobody holds the Lease")
    assert await replica.ask("filter", ASKED) == (503, "this replica does not lead: none does\n")
    # A scheduler that is started anew in the same pod has another name for itself.
    await asyncio.to_thread(hold, server, lease, f"{os.uname().nodename}_3")
    await replica.until_ready(200, "ok")
    assert await replica.end(signal.SIGTERM) == 0
