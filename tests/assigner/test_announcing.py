"""The Service leads to the replica that leads: its EndpointSlice, at a real API server."""

import asyncio
import json
import re
import signal
from pathlib import Path

import pytest

from edgeshare.contract.names import ACCELERATOR_NODES_CRD
from tests.kit.apiserver.api_server import ApiServer, done, free_ports
from tests.kit.assigner.replicas import ASKED, KEPT_S, QUICK_S, SAFETY_S, Replica, Replicas


async def start(replicas: Replicas, kubeconfig: Path, name: str, pod_ip: str, lease_s: int = KEPT_S) -> Replica:
    (port,) = free_ports(1)
    return await replicas.start(
        {"POD_NAME": "assigner", "POD_UID": f"uid-of-{pod_ip}", "POD_IP": pod_ip},
        lease_s,
        kubeconfig=str(kubeconfig),
        address=f"127.0.0.1:{port}",
        lease={"namespace": "default", "name": name},
        service={"namespace": "default", "name": name},
    )


async def leads_to(server: ApiServer, name: str) -> list[str]:
    """The addresses of the Service's slice; none where there is no slice."""
    words = ("get", "endpointslice", name, "--output=json", "--ignore-not-found")
    told = done(await asyncio.to_thread(server.kubectl, *words))
    slice_ = json.loads(told.stdout or '{"endpoints": []}')
    return [address for each in slice_["endpoints"] for address in each["addresses"]]


async def until_it_leads_to(server: ApiServer, name: str, address: str) -> None:
    for what in ("create", f"jsonpath={{.endpoints[0].addresses[0]}}={address}"):
        words = ("wait", f"--for={what}", f"endpointslice/{name}", f"--timeout={SAFETY_S}s")
        done(await asyncio.to_thread(server.kubectl, *words))
    assert await leads_to(server, name) == [address]


@pytest.mark.parametrize(("number", "lease_s"), [(signal.SIGTERM, KEPT_S), (signal.SIGKILL, QUICK_S)])
async def test_service_leads_to_the_leader_and_then_to_the_next(
    replicas: Replicas, server: ApiServer, own_name: str, number: signal.Signals, lease_s: int
) -> None:
    first = await start(replicas, server.kubeconfig, own_name, "10.0.0.1", lease_s)
    assert await first.until_ready() == "ok\n"
    await until_it_leads_to(server, own_name, "10.0.0.1")
    second = await start(replicas, server.kubeconfig, own_name, "10.0.0.2", lease_s)
    # Ready, though it does not answer.
    assert re.fullmatch(r"stands by: \S+ leads\n", await second.until_ready())
    assert (await second.ask("filter", ASKED))[0] == 503
    assert await leads_to(server, own_name) == ["10.0.0.1"]
    await first.end(number)
    await until_it_leads_to(server, own_name, "10.0.0.2")
    assert await second.ready() == (200, "ok\n")
    told = server.kubectl("get", "endpointslice", own_name, "--output=jsonpath={.metadata.ownerReferences[*].uid}")
    assert told.stdout == "uid-of-10.0.0.2"


async def test_slice_that_somebody_took_away_is_written_again(
    replicas: Replicas, server: ApiServer, own_name: str
) -> None:
    replica = await start(replicas, server.kubeconfig, own_name, "10.0.0.1")
    await until_it_leads_to(server, own_name, "10.0.0.1")
    # It is told again each few seconds, and not while nobody tells it.
    replica.process.send_signal(signal.SIGSTOP)
    done(await asyncio.to_thread(server.kubectl, "delete", "endpointslice", own_name))
    assert await leads_to(server, own_name) == []
    replica.process.send_signal(signal.SIGCONT)
    await until_it_leads_to(server, own_name, "10.0.0.1")


async def test_nothing_is_told_before_all_is_read_and_a_missing_right_is_said(
    replicas: Replicas, server: ApiServer, own_name: str, tmp_path: Path
) -> None:
    user = "announcer"

    def allow(role: str, *rules: str) -> None:
        for words in (
            ("clusterrole", role, *rules),
            ("clusterrolebinding", role, f"--clusterrole={role}", f"--user={user}"),
        ):
            done(server.kubectl("create", *words))

    kubeconfig = server.authority.kubeconfig(tmp_path / user, server.url, user)
    allow("announcer-leads", "--verb=get,create,update", "--resource=leases.coordination.k8s.io")
    allow("announcer-reads", "--verb=list,watch", "--resource=pods")
    replica = await start(replicas, kubeconfig, own_name, "10.0.0.1")
    await replica.until_ready(503, "is still reading")
    assert not [line for line in replica.lines if "the Service" in line]
    allow("announcer-reads-nodes", "--verb=list,watch", f"--resource={ACCELERATOR_NODES_CRD},nodes")
    line = await replica.said("the Service does not lead here")
    assert 'cannot patch resource "endpointslices"' in line
    # Whoever reaches it another way is answered.
    assert await replica.ready() == (200, "ok\n")
    assert (await replica.ask("filter", ASKED))[0] == 200
    allow("announcer-announces", "--verb=create,patch", "--resource=endpointslices.discovery.k8s.io")
    await replica.said("the Service leads here")
    assert await leads_to(server, own_name) == ["10.0.0.1"]


async def test_without_its_pod_s_fields_it_does_not_start(replicas: Replicas, server: ApiServer) -> None:
    service = {"namespace": "default", "name": "assigner"}
    only = await replicas.start_command(address="127.0.0.1:9443", kubeconfig=str(server.kubeconfig), service=service)
    await only.said("edgeshare: service: POD_NAME is not in the environment")
    assert await only.ended() == 1
