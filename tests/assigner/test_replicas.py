"""Replicas of the assigner as real processes, at a real API server."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from edgeshare.contract.names import ACCELERATOR_NODES, ACCELERATOR_NODES_CRD
from tests.kit.apiserver.api_server import ApiServer, free_ports
from tests.kit.assigner.connection import Connection
from tests.kit.assigner.replicas import ASKED, KEPT_S, PROBE_S, QUICK_S, SAFETY_S, Replica, Replicas


def holder(server: ApiServer, lease: dict[str, str]) -> str:
    done = server.kubectl("get", "lease", lease["name"], f"--namespace={lease['namespace']}", "-o=json")
    assert done.returncode == 0, done.stderr
    found: Any = json.loads(done.stdout)
    return str(found["spec"].get("holderIdentity", ""))


async def both(
    replicas: Replicas, server: ApiServer, lease: dict[str, str], lease_s: int = KEPT_S
) -> tuple[Replica, Replica]:
    """The one that leads, and the other."""
    first = await replicas.start(lease_s=lease_s, kubeconfig=str(server.kubeconfig), lease=lease)
    await first.until_ready()
    second = await replicas.start(lease_s=lease_s, kubeconfig=str(server.kubeconfig), lease=lease)
    await second.said("wants Lease")
    return first, second


async def test_one_of_two_answers_and_the_other_says_which(
    replicas: Replicas, server: ApiServer, lease: dict[str, str]
) -> None:
    first, second = await both(replicas, server, lease)
    assert (await first.ask("filter", ASKED))[0] == 200
    held = await asyncio.to_thread(holder, server, lease)
    why = await second.until_ready(503, held)
    assert await second.ask("filter", ASKED) == (503, why)
    assert why == f"this replica does not lead: {held} does\n"


async def test_the_other_leads_when_the_first_is_killed(
    replicas: Replicas, server: ApiServer, lease: dict[str, str]
) -> None:
    first, second = await both(replicas, server, lease, QUICK_S)
    before = await asyncio.to_thread(holder, server, lease)
    # It takes nothing while that is looked at, however long it takes.
    second.process.send_signal(signal.SIGSTOP)
    await first.end(signal.SIGKILL)
    # It is still the dead one's: it runs out.
    assert await asyncio.to_thread(holder, server, lease) == before
    second.process.send_signal(signal.SIGCONT)
    await second.until_ready()
    assert (await second.ask("filter", ASKED))[0] == 200


async def test_one_that_was_stopped_past_its_time_does_not_answer_when_it_goes_on(
    replicas: Replicas, server: ApiServer, lease: dict[str, str]
) -> None:
    first, second = await both(replicas, server, lease, QUICK_S)
    url = await first.url()
    first.process.send_signal(signal.SIGSTOP)
    await second.until_ready()
    with Connection(url) as client:
        # It is the first thing that it finds to do.
        asked = asyncio.create_task(client.ask("/filter", json.dumps(ASKED).encode()))
        await asyncio.to_thread(client.sent.wait, 60)
        first.process.send_signal(signal.SIGCONT)
        assert (await asked)[0] == 503


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_one_that_ends_leaves_the_lease_to_the_other(
    replicas: Replicas, server: ApiServer, lease: dict[str, str], number: signal.Signals
) -> None:
    first, second = await both(replicas, server, lease)
    before = await asyncio.to_thread(holder, server, lease)
    assert await first.end(number) == 0
    assert await asyncio.to_thread(holder, server, lease) != before
    await second.until_ready()
    assert (await second.ask("filter", ASKED))[0] == 200
    assert not [line for replica in (first, second) for line in replica.lines if "Traceback" in line]


async def test_one_that_was_waiting_ends_and_takes_nothing(
    replicas: Replicas, server: ApiServer, lease: dict[str, str]
) -> None:
    first, second = await both(replicas, server, lease)
    before = await asyncio.to_thread(holder, server, lease)
    assert await second.end(signal.SIGTERM) == 0
    assert await asyncio.to_thread(holder, server, lease) == before
    assert (await first.ask("filter", ASKED))[0] == 200


async def test_while_the_api_server_is_away_nobody_answers_and_then_a_new_term_begins(
    replicas: Replicas, server: ApiServer, lease: dict[str, str], tmp_path: Path
) -> None:
    async with way_to(server, tmp_path) as way:
        only = await replicas.start(kubeconfig=str(way.kubeconfig), lease=lease)
        await only.until_ready()
        await way.cut()
        await only.said("this replica leads no more: the Lease was not renewed for 5 s")
        status, why = await only.ask("filter", ASKED)
        assert (status, why) == (503, "this replica does not lead: none does\n")
        assert (await only.ready())[0] == 503
        await way.mend()
        await only.until_ready()
        await only.said(f"objects read at {ACCELERATOR_NODES}", times=2)
        assert (await only.ask("filter", ASKED))[0] == 200
    assert not [line for line in only.lines if "Traceback" in line]


async def test_a_lease_that_another_was_given_ends_the_term_at_once(
    replicas: Replicas, server: ApiServer, lease: dict[str, str]
) -> None:
    only = await replicas.start(kubeconfig=str(server.kubeconfig), lease=lease)
    await only.until_ready()
    patch = json.dumps({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1}})
    done = await asyncio.to_thread(
        server.kubectl, "patch", "lease", lease["name"], "-n", "default", "--type=merge", f"--patch={patch}"
    )
    assert done.returncode == 0, done.stderr
    await only.said("this replica leads no more: somebody holds the Lease")
    # It never comes to renew it, so it is had again.
    await only.said("this replica leads", times=3)
    await only.until_ready()


async def test_a_leader_answers_when_it_has_read_all(replicas: Replicas, server: ApiServer, tmp_path: Path) -> None:
    kubeconfig = server.authority.kubeconfig(tmp_path / "reader", server.url, "reader")
    for resource in ("pods", "nodes"):
        await asyncio.to_thread(allow, server, resource)
    only = await replicas.start(kubeconfig=str(kubeconfig))
    for path in ("/api/v1/pods", "/api/v1/nodes"):
        await only.said(f"objects read at {path}")
    why = f"this replica leads, and is still reading {ACCELERATOR_NODES}\n"
    assert await only.until_ready(503) == why
    assert await only.ask("filter", ASKED) == (503, why)
    await asyncio.to_thread(allow, server, ACCELERATOR_NODES_CRD)
    await only.until_ready()
    assert (await only.ask("filter", ASKED))[0] == 200


def asking(name: str, cpu: str = "0") -> dict[str, Any]:
    """A pod of half a GPU."""
    resources = {"limits": {"edge/gpu-percent": "50"}, "requests": {"cpu": cpu}}
    return {
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"containers": [{"name": "main", "resources": resources}]},
    }


def accelerator_node(name: str) -> dict[str, Any]:
    """With one GPU."""
    device = {"id": f"GPU-{name}", "kind": "gpu", "model": "T4", "memoryMiB": 1000, "healthy": True}
    status = {"deviceCount": 1, "healthyCount": 1, "allocationCount": 0, "devices": [device], "allocations": []}
    return {
        "apiVersion": "share.edge/v1alpha1",
        "kind": "AcceleratorNode",
        "metadata": {"name": name},
        "status": status,
    }


async def test_a_leader_is_told_what_changes(replicas: Replicas, server: ApiServer) -> None:
    only = await replicas.start(kubeconfig=str(server.kubeconfig))
    await only.until_ready()
    for words, text, nodes in (
        (("create", "--filename=-"), json.dumps(accelerator_node("new")), ["new"]),
        (("delete", "acceleratornode", "new"), "", []),
    ):
        done = await asyncio.to_thread(server.kubectl, *words, stdin=text)
        assert done.returncode == 0, done.stderr
        async with asyncio.timeout(SAFETY_S):
            while True:
                _, answered = await only.ask("filter", {"Pod": asking("probe"), "NodeNames": ["new"]})
                if answered["NodeNames"] == nodes:
                    break
                # Nobody tells of it.
                await asyncio.sleep(PROBE_S)
    assert not [line for line in only.lines if "is not followed" in line]


async def test_a_leader_knows_what_cores_the_nodes_have(replicas: Replicas, server: ApiServer) -> None:
    """What asks for many goes where its GPU is left with enough for the others."""
    cores = {"few": "9", "many": "64"}
    things = [accelerator_node(name) for name in cores]
    for name, cpu in cores.items():
        status = {"allocatable": {"cpu": cpu, "memory": "64Gi"}}
        things.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status})
    made = json.dumps({"apiVersion": "v1", "kind": "List", "items": things})
    done = await asyncio.to_thread(server.kubectl, "create", "--filename=-", stdin=made)
    assert done.returncode == 0, done.stderr
    only = await replicas.start(kubeconfig=str(server.kubeconfig))
    await only.until_ready()
    for number in range(20):
        await only.ask("filter", {"Pod": asking(f"seen-{number}", "4"), "NodeNames": []})
    best = {}
    for name, cpu in (("large", "8"), ("small", "500m")):
        args = {"Pod": asking(name, cpu), "NodeNames": list(cores)}
        assert (await only.ask("filter", args))[1]["NodeNames"] == list(cores)
        scores = (await only.ask("prioritize", args))[1]
        best[name] = max(scores, key=lambda each: each["Score"])["Host"]
    done = await asyncio.to_thread(server.kubectl, "delete", "--filename=-", stdin=made)
    assert done.returncode == 0, done.stderr
    assert best == {"large": "many", "small": "few"}


def allow(server: ApiServer, resource: str) -> None:
    name = resource.partition(".")[0]
    for words in (
        ("clusterrole", f"reads-{name}", "--verb=list,watch", f"--resource={resource}"),
        ("clusterrolebinding", f"reads-{name}", f"--clusterrole=reads-{name}", "--user=reader"),
    ):
        done = server.kubectl("create", *words)
        assert done.returncode == 0, done.stderr


async def test_the_command_says_where_it_answers_and_ends(replicas: Replicas, server: ApiServer) -> None:
    only = await replicas.start_command(kubeconfig=str(server.kubeconfig))
    assert (await only.url()).startswith("http://127.0.0.1:")
    await only.until_ready()
    assert (await only.ask("filter", ASKED))[0] == 200
    assert (await only.ask("filter", ["nonsense"]))[0] == 400
    assert await only.end(signal.SIGTERM) == 0
    assert not [line for line in only.lines if "Traceback" in line]


class Way:
    """To the API server, over which a replica goes; it can be cut."""

    def __init__(self, kubeconfig: Path, host: str, port: int) -> None:
        self.kubeconfig = kubeconfig
        self._there = (host, port)
        # The same when it was cut and is mended: nobody else is given it meanwhile.
        self._own: tuple[str, int] = ("127.0.0.1", free_ports(1)[0])
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"https://{self._own[0]}:{self._own[1]}"

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._pass, *self._own)

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # At once: it may be cut while the other end is being reached.
        self._writers.add(writer)
        from_there, to_there = await asyncio.open_connection(*self._there)
        self._writers.add(to_there)
        await asyncio.gather(pump(reader, to_there), pump(from_there, writer))
        self._writers -= {writer, to_there}


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        # It was cut.
        pass
    finally:
        writer.close()


@asynccontextmanager
async def way_to(server: ApiServer, folder: Path) -> AsyncIterator[Way]:
    config = yaml.safe_load(server.kubeconfig.read_text())
    there = urlsplit(config["clusters"][0]["cluster"]["server"])
    assert there.hostname is not None
    assert there.port is not None
    way = Way(folder / "kubeconfig", there.hostname, there.port)
    await way.mend()
    config["clusters"][0]["cluster"]["server"] = way.url
    way.kubeconfig.write_text(yaml.safe_dump(config))
    try:
        yield way
    finally:
        await way.cut()
