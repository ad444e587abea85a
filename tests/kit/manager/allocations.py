"""Allocations of a testbed's GPU, and the sockets that they are asked of."""

import grpc

from edgeshare.v1.allocations_pb2 import Allocation
from tests.kit.manager.testbed import Testbed


def channel(testbed: Testbed, name: str) -> grpc.Channel:
    """To one of the manager's sockets, by its name."""
    return grpc.insecure_channel(f"unix:{testbed.runtime_dir / name}")


def half(testbed: Testbed, allocation_id: str = "half", **fields: object) -> Allocation:
    """Half of the first GPU, unless ``fields`` say otherwise."""
    wanted: dict[str, object] = {"id": allocation_id, "device_ids": testbed.uuids[:1], "request_percent": 50, **fields}
    return Allocation(**wanted)  # type: ignore[arg-type]
