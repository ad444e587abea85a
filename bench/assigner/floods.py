"""What floods of its port cost the assigner, and who asks it honestly."""

import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bench.assigner.api_server import ApiServer
from bench.assigner.flooding import FLOODS, SILENT
from bench.assigner.loop import SEEN
from bench.assigner.objects import accelerators, node, pods
from bench.assigner.process import assigning
from bench.host import resident_mib
from bench.measurement import Bench, Effort, Measurement
from bench.report import Row, Target
from edgeshare.contract.errors import Unavailable
from sharemgr.cluster.server import http2
from tests.kit.apiserver.certificates import Authority
from tests.kit.assigner.http2_client import SCHEDULER, Client

NODES = 1_000
NOT_LET_IN = "pings of a name that is not let in"
ASK_S = 0.05
OK = 200

MEMORY_TARGET = Target(256)
ANSWER_TARGET = Target(100)


def measurements(effort: Effort) -> list[Measurement]:
    """One for each flood."""
    return [
        Measurement(f"the assigner beside {name}", partial(measure, effort, name))
        for name in (SILENT, NOT_LET_IN, *FLOODS)
    ]


def measure(effort: Effort, name: str, bench: Bench) -> list[Row]:
    """The most memory that it has, and in each run the latest answer to one filter after the other."""
    folder = bench.folder / f"flood of {name}"
    folder.mkdir()
    memory_mib, latest_ms = asyncio.run(_beside(folder, name, effort))
    settings: dict[str, str | float] = {"flood": name, "nodes": NODES}
    return [
        Row("assigner's memory beside a flood, the most", "MiB", [memory_mib], settings, target=MEMORY_TARGET),
        Row("filter answered beside a flood, the latest", "ms", latest_ms, settings, target=ANSWER_TARGET),
    ]


async def _beside(folder: Path, name: str, effort: Effort) -> tuple[float, list[float]]:
    names = [f"node-{number:05d}" for number in range(NODES)]
    server = ApiServer([node(name) for name in names], [accelerators(name, 1, ()) for name in names])
    authority = Authority(folder / "certificates")
    certificate, key = authority.issue("edgeshare", "edgeshare", hosts=("IP:127.0.0.1",))
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate, key)
    files = {"certificate": certificate, "private_key": key, "client_authority": authority.certificate}
    tls = {name: str(file) for name, file in files.items()}
    async with (
        server.running(serving) as api_url,
        assigning(folder, api_url, authority.certificate, {**tls, "clients": [SCHEDULER]}) as (url, pid),
        _asking(authority, url) as client,
    ):
        async with _flooded(authority, url, name):
            latest_ms = [max(await _ask(client, names, effort.flood_s)) for _ in range(effort.flood_runs)]
        return resident_mib(pid, most=True), latest_ms


@asynccontextmanager
async def _asking(authority: Authority, url: str) -> AsyncIterator[Client]:
    """As kube-scheduler does: over one connection, and when all that is there has been read."""
    context, parts = _context(authority, SCHEDULER), urlsplit(url)
    status = 0
    while status != OK:
        await asyncio.sleep(ASK_S)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
        client = Client(reader, writer)
        client.http.initiate_connection()
        try:
            # Of one that does not lead yet the connections end.
            with suppress(ConnectionError):
                await client.flush()
                status, _ = await client.ask("/filter", _asked("first", []))
            if status == OK:
                yield client
        finally:
            writer.transport.abort()


@asynccontextmanager
async def _flooded(authority: Authority, url: str, name: str) -> AsyncIterator[None]:
    """Beside a process that floods it."""
    shown, flood = ("nobody", "pings") if name == NOT_LET_IN else (SCHEDULER, name)
    files = (authority.certificate, *authority.issue(shown, shown))
    argv = [sys.executable, "-m", "bench.assigner.flooding", url, *map(str, files), flood]
    hostile = await asyncio.create_subprocess_exec(*argv)
    try:
        yield
        if hostile.returncode is not None:
            raise Unavailable(f"what floods the assigner ended with status {hostile.returncode}")
    finally:
        if hostile.returncode is None:
            hostile.terminate()
        await hostile.wait()


async def _ask(client: Client, names: list[str], seconds: float) -> list[float]:
    """How long each filter took, one after the other. What they reserve is free again before all room is gone."""
    answered_ms: list[float] = []
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        await asyncio.sleep(ASK_S)
        begin_s = time.perf_counter()
        status, text = await client.ask("/filter", _asked(f"honest-{len(answered_ms)}", names[:SEEN]))
        answered_ms.append(1000 * (time.perf_counter() - begin_s))
        if status != OK or len(json.loads(text)["NodeNames"]) != 1:
            raise Unavailable(f"the assigner finds no node, status {status}: {text[:300]}")
    return answered_ms


def _asked(name: str, nodes: list[str]) -> bytes:
    (pod,) = pods(name, 1)
    return json.dumps({"Pod": pod.asked(1), "Nodes": None, "NodeNames": nodes}).encode()


def _context(authority: Authority, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.certificate)
    context.load_cert_chain(*authority.issue(name, name))
    context.set_alpn_protocols([http2.NAME])
    return context
