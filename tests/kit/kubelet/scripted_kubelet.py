"""A kubelet as far as a device plugin can tell: real sockets, real gRPC, and the ways of Kubernetes 1.36 with
both.

It dials back inside Register, takes each list as the whole truth, offers what it holds to be free, keeps the
answers of Allocate, frees what ended pods had only when it next looks, and deletes every socket in its folder
when it starts.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from edgeshare.kubelet.v1.podresources_pb2_grpc import add_PodResourcesListerServicer_to_server
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.kubelet.v1beta1.deviceplugin_pb2_grpc import (
    DevicePluginStub,
    RegistrationServicer,
    add_RegistrationServicer_to_server,
)
from tests.kit.kubelet.connection import Connection
from tests.kit.kubelet.pod import AdmissionError, Pod, StartError
from tests.kit.kubelet.pod_resources import PodResourcesService, opened, shuffled

if TYPE_CHECKING:
    # The generated code has it for type checkers alone.
    from edgeshare.kubelet.v1beta1.deviceplugin_pb2_grpc import DevicePluginAsyncStub

RESOURCE = "edge/gpu-percent"
SAFETY_S = 30


class ScriptedKubelet(RegistrationServicer, PodResourcesService):
    """Between ``start`` and ``stop`` it runs; what it knows survives both, as a kubelet's checkpoint does."""

    def __init__(self, root: Path, resource: str = RESOURCE) -> None:
        super().__init__(resource)
        self.folder = root / "device-plugins"
        self.resources_socket = root / "pod-resources/kubelet.sock"
        self.register_error: grpc.StatusCode | None = None
        self.asked = 0
        """Calls of Register."""
        self.may_register = opened()
        """Cleared: Register does not answer."""
        self.may_take_in = opened()
        """Cleared: it has an answer of Allocate, and does not know it yet."""
        self.takes_lists = True
        self._servers: list[grpc.aio.Server] = []
        self._streams: set[asyncio.Task[None]] = set()
        self._channels: list[grpc.aio.Channel] = []

    # -- Its life
    # ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Clears its plugin folder and serves."""
        for folder in (self.folder, self.resources_socket.parent):
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.iterdir():
                if path.is_socket():
                    # The plugin may be taking its own away.
                    path.unlink(missing_ok=True)
        self._allocated = {unit for units in self.held.values() for unit in units}
        for path in (self.folder / "kubelet.sock", self.resources_socket):
            await self._serve(path)

    async def stop(self) -> None:
        """Its connections break."""
        for task in self._streams:
            task.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)
        for channel in self._channels:
            await channel.close(None)
        for server in self._servers:
            await server.stop(None)
        for other in self.beside.values():
            await other.stop()
        self._servers, self._channels, self.registrations = [], [], []

    async def stop_listing(self) -> None:
        """PodResources answers no more."""
        await self._servers.pop().stop(None)

    async def listen_again(self) -> None:
        """PodResources answers again."""
        await self._serve(self.resources_socket)

    async def _serve(self, path: Path) -> None:
        server = grpc.aio.server()
        if path == self.resources_socket:
            add_PodResourcesListerServicer_to_server(self, server)
        else:
            add_RegistrationServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        self._servers.append(server)

    # -- What a test looks at
    # ---------------------------------------------------------------------------------

    async def until_asked(self, calls: int) -> None:
        """Waits until Register was called so often."""
        async with asyncio.timeout(SAFETY_S), self._changed:
            await self._changed.wait_for(lambda: self.asked >= calls)

    async def until(self, registrations: int = 0, healthy: int | None = None, listed: int | None = None) -> Connection:
        """Waits until there were so many registrations and the newest one's list has so many units, and so many healthy
        ones."""

        def reached() -> bool:
            if len(self.registrations) < max(registrations, 1) or not self.plugin.connected:
                return False
            fits = healthy in (None, len(self.healthy())) and listed in (None, len(self.plugin.units))
            return self.plugin.lists > 0 and fits

        async with asyncio.timeout(SAFETY_S), self._changed:
            await self._changed.wait_for(reached)
        return self.plugin

    async def until_listed(self, calls: int) -> None:
        """Waits until it has looked so often, from now on, to answer List."""
        enough = self.lists + calls
        async with asyncio.timeout(SAFETY_S), self._changed:
            await self._changed.wait_for(lambda: self.lists >= enough)

    # -- What it does with pods
    # -------------------------------------------------------------------------------

    async def admit(self, pod: Pod) -> dict[str, frozenset[str]]:
        """Admits a pod, container by container; returns the units of each. Raises AdmissionError."""
        self.pods[pod.uid] = pod
        reusable: set[str] = set()
        try:
            for name, size in [*pod.init.items(), *pod.containers.items()]:
                if size:
                    units = await self._allocate(pod, name, size, reusable)
                    reusable = reusable | units if name in pod.init else reusable - units
        except AdmissionError:
            del self.pods[pod.uid]
            raise
        return {name: units for (uid, name), units in self.held.items() if uid == pod.uid}

    async def start_container(self, pod: Pod, name: str) -> api.ContainerAllocateResponse:
        """What precedes each start of a container; returns the stored answer. Raises StartError."""
        await self.pre_start(self.held[pod.uid, name])
        return self.answers[pod.uid, name]

    async def pre_start(self, units: frozenset[str]) -> None:
        """The call itself. Raises StartError."""
        request = api.PreStartContainerRequest(devices_ids=shuffled(units))
        try:
            await self.plugin.stub.PreStartContainer(request, timeout=SAFETY_S)
        except grpc.aio.AioRpcError as error:
            raise StartError(error.details()) from error

    async def run(self, pod: Pod) -> dict[str, api.ContainerAllocateResponse]:
        """Admits a pod and starts its containers."""
        await self.admit(pod)
        names = [name for name, size in [*pod.init.items(), *pod.containers.items()] if size]
        return {name: await self.start_container(pod, name) for name in names}

    def end(self, pod: Pod) -> None:
        """The pod is over. Its units come free when the kubelet next looks."""
        del self.pods[pod.uid]

    def forget(self, units: frozenset[str]) -> None:
        """The kubelet's bug: it no longer knows that it is handing these out."""
        self._allocated -= units

    async def lose_checkpoint(self, *but: Pod, lists_pods: bool = True, healthy: int = 200) -> None:
        """It starts anew and knows of no units that it gave to anybody but these; nor of any pods, unless it
        ``lists_pods``. Returns when it has so many healthy units."""
        await self.stop()
        uids = {pod.uid for pod in but}
        self.held = {key: units for key, units in self.held.items() if key[0] in uids}
        self.answers = {key: answer for key, answer in self.answers.items() if key[0] in uids}
        if not lists_pods:
            self.pods = {}
        await self.start()
        await self.until(healthy=healthy)

    def free(self) -> set[str]:
        """What it would offer."""
        return self.healthy() - self._allocated

    async def _allocate(self, pod: Pod, name: str, size: int, reusable: set[str]) -> frozenset[str]:
        self.look()
        chosen = set(shuffled(reusable)[:size])
        if len(chosen) < size:
            chosen |= await self._choose(chosen, size)
        self._allocated |= chosen
        self._allocating += 1
        request = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=shuffled(chosen))])
        try:
            answer = await self.plugin.stub.Allocate(request, timeout=SAFETY_S)
        except grpc.aio.AioRpcError as error:
            self._allocated = {unit for units in self.held.values() for unit in units}
            raise AdmissionError(error.details()) from error
        finally:
            self._allocating -= 1
        await self.may_take_in.wait()
        self.held[pod.uid, name] = frozenset(chosen)
        self.answers[pod.uid, name] = answer.container_responses[0]
        return frozenset(chosen)

    async def _choose(self, chosen: set[str], size: int) -> set[str]:
        free = self.free()
        missing = size - len(chosen)
        if len(free) < missing:
            raise AdmissionError(f"{size} units asked for, {len(free)} are free")
        preferred = await self.prefer(free | chosen, chosen, size) if missing < len(free) else []
        preferred = [unit for unit in preferred if unit in free]
        rest = shuffled(free - set(preferred))
        return set([*preferred, *rest][:missing])

    async def prefer(self, available: set[str], must_include: set[str], size: int) -> list[str]:
        """Asks which units to take. Raises AdmissionError."""
        request = api.ContainerPreferredAllocationRequest(
            available_deviceIDs=shuffled(available), must_include_deviceIDs=shuffled(must_include), allocation_size=size
        )
        try:
            answer = await self.plugin.stub.GetPreferredAllocation(
                api.PreferredAllocationRequest(container_requests=[request]), timeout=SAFETY_S
            )
        except grpc.aio.AioRpcError as error:
            raise AdmissionError(error.details()) from error
        return list(answer.container_responses[0].deviceIDs)

    # -- What it serves
    # ---------------------------------------------------------------------------------------

    async def Register(self, request: api.RegisterRequest, context: grpc.aio.ServicerContext[Any, Any]) -> api.Empty:  # noqa: N802
        """Dials back before it answers."""
        if request.resource_name in self.beside:
            return await self.beside[request.resource_name].Register(request, context)
        self.asked += 1
        async with self._changed:
            self._changed.notify_all()
        await self.may_register.wait()
        if self.register_error is not None:
            await context.abort(self.register_error, "not now")
        assert (request.version, request.resource_name) == ("v1beta1", self.resource)
        assert request.endpoint not in [connection.endpoint for connection in self.registrations]
        channel = grpc.aio.insecure_channel(f"unix:{self.folder / request.endpoint}")
        self._channels.append(channel)
        stub: DevicePluginAsyncStub = DevicePluginStub(channel)
        async with asyncio.timeout(10):
            options = await stub.GetDevicePluginOptions(api.Empty(), wait_for_ready=True)
        if not self.takes_lists:
            return api.Empty()
        connection = Connection(request.endpoint, stub, options, stub.ListAndWatch(api.Empty()))
        self.registrations.append(connection)
        task = asyncio.create_task(self._watch(connection))
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)
        return api.Empty()

    async def _watch(self, connection: Connection) -> None:
        try:
            async for message in connection.stream:
                async with self._changed:
                    connection.units = {device.ID: device.health for device in message.devices}
                    connection.topology = {d.ID: [node.ID for node in d.topology.nodes] for d in message.devices}
                    connection.lists += 1
                    self._changed.notify_all()
        except grpc.aio.AioRpcError:
            pass  # as when a plugin is killed
        except asyncio.CancelledError:
            if not connection.stream.cancelled():
                raise
        async with self._changed:
            connection.connected = False
            connection.units = {}
            self._changed.notify_all()
        if connection is not self.plugin:
            # Up to 1.36 the end of an old stream disconnects the newest plugin of the resource.
            self.plugin.stream.cancel()
