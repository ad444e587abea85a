"""What a kubelet has of a plugin that registered."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc

from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api

if TYPE_CHECKING:
    # The generated code has it for type checkers alone.
    from edgeshare.kubelet.v1beta1.deviceplugin_pb2_grpc import DevicePluginAsyncStub


@dataclass
class Connection:
    """One registration of a plugin, and the list that its stream last sent."""

    endpoint: str
    stub: "DevicePluginAsyncStub"
    options: api.DevicePluginOptions
    stream: grpc.aio.UnaryStreamCall[api.Empty, api.ListAndWatchResponse]
    units: dict[str, str] = field(default_factory=dict)
    topology: dict[str, list[int]] = field(default_factory=dict)
    lists: int = 0
    connected: bool = True
