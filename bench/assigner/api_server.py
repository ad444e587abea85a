"""A stand-in for the API server: what is listed and watched of pods, nodes and their devices, and Bindings."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from bench.assigner.objects import NAMESPACE, Json, Pod, node
from edgeshare.contract.names import ACCELERATOR_NODES, GPU_ASSIGNMENT

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class ApiServer:
    """What there is to begin with, and who watches what."""

    def __init__(self, nodes: list[Json], accelerator_nodes: list[Json]) -> None:
        self._lists = {PODS: list[Json](), NODES: nodes, ACCELERATOR_NODES: accelerator_nodes}
        self._watches: dict[str, web.StreamResponse] = {}
        self.waiting: dict[str, Pod] = {}
        """Pods that may be bound, by name."""
        self._version = 1
        self._over = asyncio.Event()

    def next_version(self) -> int:
        """Of an object that changes."""
        self._version += 1
        return self._version

    async def tell(self, path: str, kind: str, thing: Json) -> None:
        """Who watches that path hears it."""
        watch = self._watches.get(path)
        if watch is not None:
            await watch.write(json.dumps({"type": kind, "object": thing}, separators=(",", ":")).encode() + b"\n")

    @asynccontextmanager
    async def running(self, context: ssl.SSLContext) -> AsyncIterator[str]:
        """Serves while it is entered; yields its URL."""
        app = web.Application()
        app.add_routes([web.get(path, self._look) for path in self._lists])
        app.router.add_patch(f"{NODES}/{{name}}/status", self._patch)
        app.add_routes([web.post(f"/api/v1/namespaces/{NAMESPACE}/pods/{{name}}/binding", self._bind)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
            await site.start()
            yield f"https://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            self._over.set()
            await runner.cleanup()

    async def _look(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            metadata = {"resourceVersion": str(self._version)}
            return web.json_response({"metadata": metadata, "items": self._lists[request.path]})
        watch = web.StreamResponse()
        watch.content_type = "application/json"
        await watch.prepare(request)
        self._watches[request.path] = watch
        await self._over.wait()
        return watch

    async def _patch(self, request: web.Request) -> web.Response:
        return web.json_response(node(request.match_info["name"]))

    async def _bind(self, request: web.Request) -> web.Response:
        binding = json.loads(await request.read())
        pod = self.waiting.pop(request.match_info["name"])
        pod.node = binding["target"]["name"]
        pod.assignment = binding["metadata"]["annotations"][GPU_ASSIGNMENT]
        return web.json_response(SUCCESS, status=201)
