"""A stand-in for NVIDIA's device plugin, as a kubelet knows it: the same calls, ids and answers.

With time-slicing a GPU is advertised as often as it has replicas, each by its UUID and a number; a container is told of
its GPU by a variable. (NVIDIA/k8s-device-plugin, internal/rm/devices.go and internal/plugin/server.go.)
"""

import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from edgeshare.contract.names import KUBELET_SOCKET
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.kubelet.v1beta1.deviceplugin_pb2_grpc import (
    DevicePluginServicer,
    RegistrationStub,
    add_DevicePluginServicer_to_server,
)

ENDPOINT = "nvidia-gpu.sock"
CALL_S = 30  # a safety limit
Context = grpc.ServicerContext


class TimeSliced(DevicePluginServicer):
    """Each of some GPUs so many times."""

    def __init__(self, uuids: Collection[str], replicas: int) -> None:
        self._ids = [f"{uuid}::{number}" for uuid in uuids for number in range(replicas)]
        self._over = threading.Event()

    @contextmanager
    def registered(self, folder: Path, resource: str = "nvidia.com/gpu") -> Iterator[None]:
        """Serves in a kubelet's folder, which knows it until the end."""
        server = grpc.server(ThreadPoolExecutor(4))
        add_DevicePluginServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{folder / ENDPOINT}")
        server.start()
        try:
            with grpc.insecure_channel(f"unix:{folder / KUBELET_SOCKET}") as channel:
                request = api.RegisterRequest(version="v1beta1", endpoint=ENDPOINT, resource_name=resource)
                RegistrationStub(channel).Register(request, timeout=CALL_S)
            yield
        finally:
            self._over.set()
            server.stop(None).wait()

    def GetDevicePluginOptions(self, request: api.Empty, context: Context) -> api.DevicePluginOptions:  # noqa: N802
        """None that this needs."""
        return api.DevicePluginOptions()

    def ListAndWatch(self, request: api.Empty, context: Context) -> Iterator[api.ListAndWatchResponse]:  # noqa: N802
        """All of them, and nothing new until the end."""
        yield api.ListAndWatchResponse(devices=[api.Device(ID=each, health="Healthy") for each in self._ids])
        self._over.wait()

    def Allocate(self, request: api.AllocateRequest, context: Context) -> api.AllocateResponse:  # noqa: N802
        """Each container is told of the GPUs of its replicas."""
        answers = []
        for asked in request.container_requests:
            uuids = ",".join(sorted({each.partition("::")[0] for each in asked.devices_ids}))
            answers.append(api.ContainerAllocateResponse(envs={"NVIDIA_VISIBLE_DEVICES": uuids}))
        return api.AllocateResponse(container_responses=answers)
