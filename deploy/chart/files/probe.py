"""Exit status 0 when a gRPC server behind a Unix socket answers a call. For the kubelet's exec probes.

Usage: probe.py METHOD FOLDER PATTERN; of several sockets that fit, one that answers is enough.
It takes a call to see a process that hangs: the kernel goes on accepting connections for it. Nothing that the
call does not need is imported, because the kubelet starts this again and again.
"""

import sys
from pathlib import Path

import grpc

TIMEOUT_S = 5  # below the probes' own limit, so that the reason is told
HEALTH = "/grpc.health.v1.Health/Check"
SERVING = b"\x08\x01"  # HealthCheckResponse with status = SERVING


def fault(method: str, socket: Path) -> str:
    """What is wrong with the server behind `socket`; empty when nothing is."""
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        try:
            # Bytes go and come as they are; none is a valid request of every method that is asked here.
            answer = channel.unary_unary(method, bytes, bytes)(b"", timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            return f"{socket}: {error.code().name}: {error.details()}"
    return f"{socket}: not serving" if method == HEALTH and answer != SERVING else ""


def main(method: str, folder: str, pattern: str) -> str:
    """Why there is no healthy server; empty when there is one."""
    faults = [fault(method, socket) for socket in Path(folder).glob(pattern)]
    if "" in faults:
        return ""
    return "; ".join(faults) or f"{folder} has no {pattern}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) or 0)
