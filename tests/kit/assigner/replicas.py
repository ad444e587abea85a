"""`edgeshare sharemgr cluster` as a process, and what can be asked of it."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.kit.processes import forked

SAFETY_S = 120
PROBE_S = 0.05
QUICK_S = 6
"""After so long unrenewed a replica's Lease is anybody's, where that is waited for."""
KEPT_S = 600
"""After so long where nobody is to lose it, however busy the machine is."""
HERE = Path(__file__).parent
ASKED: dict[str, Any] = {"Pod": {"metadata": {"uid": "1", "namespace": "default", "name": "a"}}, "NodeNames": ["n1"]}
"""What filter can be asked."""


class Replica:
    """One that was started."""

    def __init__(self, process: forked.Forked) -> None:
        self.process = process
        self.lines: list[str] = []
        """What it said, on both outputs."""
        self._news = asyncio.Condition()
        self._over = False
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        stream = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(stream)
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, self.process.stdout)
        with closing(pipe):
            async for line in stream:
                async with self._news:
                    self.lines.append(line.decode().rstrip("\n"))
                    self._news.notify_all()
        async with self._news:
            self._over = True
            self._news.notify_all()

    async def said(self, text: str, times: int = 1) -> str:
        """Returns the line with this text, when it was said so often."""
        async with asyncio.timeout(SAFETY_S), self._news:
            await self._news.wait_for(lambda: len(self._with(text)) >= times or self._over)
        assert len(self._with(text)) >= times, "\n".join(["it has ended:", *self.lines])
        return self._with(text)[times - 1]

    def _with(self, text: str) -> list[str]:
        return [line for line in self.lines if text in line]

    async def url(self) -> str:
        """Where it answers, when it does."""
        line = await self.said("edgeshare sharemgr cluster: ready, ")
        return line.rpartition(" ")[2]

    async def pages(self) -> str:
        """Where its pages are."""
        line = await self.said("metrics at http://")
        return line.partition("metrics at ")[2].removesuffix("/metrics")

    async def page(self, name: str) -> tuple[int, str]:
        """One of them, by its path, with its status."""
        async with aiohttp.ClientSession() as session, session.get(f"{await self.pages()}/{name}") as response:
            return response.status, await response.text()

    async def ready(self) -> tuple[int, str]:
        """Its readiness now, and why."""
        return await self.page("readyz")

    async def until_ready(self, status: int = 200, because: str = "") -> str:
        """Returns why, when its readiness is this, with this in its reason."""
        async with asyncio.timeout(SAFETY_S):
            while True:
                now, why = await self.ready()
                if now == status and because in why:
                    return why
                # A page tells of no change.
                await asyncio.sleep(PROBE_S)

    async def ask(self, verb: str, body: object) -> tuple[int, Any]:
        """What it answers, parsed where it is JSON."""
        url = f"{await self.url()}/{verb}"
        async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" else text

    async def end(self, number: signal.Signals) -> int:
        """Sends a signal; returns the exit status when it has ended and all that it said was read."""
        self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """The same for one that ends by itself."""
        async with asyncio.timeout(SAFETY_S):
            await self._reading
        return await asyncio.to_thread(self.process.wait, SAFETY_S)


class Replicas:
    """Makes them."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._count = 0

    async def start(
        self, environment: Mapping[str, str] | None = None, lease_s: int = QUICK_S, **config: object
    ) -> Replica:
        """One with this configuration, on loopback, and with a Lease of so many seconds; ``environment`` is what is set
        there beside the test's own."""
        program = (str(HERE / "quick_lease.py"), str(self.config(**config)), str(lease_s))
        return await self._start((), program, environment or {})

    async def start_command(self, **config: object) -> Replica:
        """One as users start it."""
        words = ("sharemgr", "cluster", "--config", str(self.config(**config)))
        return await self._start(words, (forked.COMMAND,), {})

    def config(self, **config: object) -> Path:
        """A file with this configuration, on loopback."""
        self._count += 1
        path = self._folder / f"replica-{self._count}.yaml"
        path.write_text(yaml.safe_dump({"address": "127.0.0.1:0", "metrics_address": "127.0.0.1:0", **config}))
        return path

    async def _start(self, words: Sequence[str], program: Sequence[str], environment: Mapping[str, str]) -> Replica:
        return await self._stack.enter_async_context(_started(words, program, environment))


@asynccontextmanager
async def _started(
    words: Sequence[str], program: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[Replica]:
    replica = Replica(forked.start(words, {**os.environ, **environment}, program=program, loaded=forked.CLUSTER))
    try:
        yield replica
    finally:
        if replica.process.poll() is None:
            await replica.end(signal.SIGKILL)
