"""Calls to our containerd, as the kubelet makes them."""

import contextlib

import grpc

from tests.kit.onenode.layout import CONTAINERD_SOCKET
from tests.kit.processes.errors import NodeError

CALL_S = 60  # a safety limit: a pod's containers end within their grace
PROBE_S = 2


def ready() -> bool:
    """Whether it takes calls: it listens some time before that, and refuses them until then."""
    with contextlib.suppress(grpc.RpcError):
        _call("Status", b"", PROBE_S)
        return True
    return False


def remove_pod(pod: str) -> None:
    """End and remove a pod, by its sandbox's id (64 characters), with its network. Raises NodeError."""
    # The request of both calls has one field, number 1: the id.
    request = bytes([0x0A, len(pod)]) + pod.encode()
    for method in ("StopPodSandbox", "RemovePodSandbox"):
        try:
            _call(method, request, CALL_S)
        except grpc.RpcError as error:
            raise NodeError(f"containerd does not remove the pod {pod}: {method}: {error}") from error


def _call(method: str, request: bytes, timeout_s: float) -> None:
    with grpc.insecure_channel(f"unix:{CONTAINERD_SOCKET}") as channel:
        channel.unary_unary(f"/runtime.v1.RuntimeService/{method}", None, None)(request, timeout=timeout_s)
