"""All that hostile clients of a manager do, by name; and what of it goes past the records of a client."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import grpc
import pytest

from cuda_hook import wire
from edgeshare.cli.run import hook_library
from edgeshare.contract.names import ALLOCATIONS_SOCKET, STATUS_SOCKET
from edgeshare.contract.units import MIB
from edgeshare.v1.status_pb2 import WatchSharesRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from simgpu.native import BURN
from tests.kit.manager.attacker import Attacker
from tests.kit.manager.passing import lingering, passes
from tests.kit.processes.waiting import PATIENCE_S

REPLACED = """
import ctypes, fcntl, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0  # which joins
for name in os.listdir("/proc/self/fd"):
    try:
        fcntl.fcntl(int(name), fcntl.F_SETFD, 0)
    except OSError:
        pass
del os.environ["LD_PRELOAD"]
os.execv(sys.argv[1], [sys.argv[1], "--seconds", "600"])
"""
"""Keeps its connection to the manager, and loses its hook."""


def babbles(attacker: Attacker) -> None:
    """Noise, endless headers and huge messages at the gRPC sockets, and streams that nobody reads."""
    noises = (
        attacker.random.randbytes(65536),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 65536,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" * 1000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1000,
    )
    address = f"unix:{attacker.runtime_dir / STATUS_SOCKET}"
    with (
        grpc.insecure_channel(address) as unread,
        grpc.insecure_channel(
            f"unix:{attacker.runtime_dir / ALLOCATIONS_SOCKET}", (("grpc.max_send_message_length", -1),)
        ) as huge,
    ):
        streams = [ShareStatusStub(unread).WatchShares(WatchSharesRequest(interval_ns=100_000_000)) for _ in range(80)]
        call = huge.unary_unary("/edgeshare.v1.Allocations/AddAllocation", None, None)
        while not attacker.over.is_set():
            for name in (STATUS_SOCKET, ALLOCATIONS_SOCKET):
                for noise in noises:
                    with socket.socket(socket.AF_UNIX) as connection, suppress(ConnectionError, TimeoutError):
                        connection.settimeout(0.2)
                        connection.connect(str(attacker.runtime_dir / name))
                        connection.sendall(noise)
            with pytest.raises(grpc.RpcError):
                call(bytes(8 * MIB), timeout=PATIENCE_S)
            attacker.over.wait(0.1)
        for stream in streams:
            stream.cancel()  # type: ignore[no-untyped-call]


def lingers(attacker: Attacker) -> None:
    """Passes along, with good records, what whoever drops it last waits for; where the kernel lets it."""
    request = wire.encode(wire.Request())
    while not attacker.over.is_set():
        client = attacker.joined()
        with lingering() as file, suppress(ConnectionError, TimeoutError):
            client.socket.settimeout(0.2)
            passes(client.socket, request, file)
            attacker.sent += 1
            attacker.over.wait(0.05)
        client.close()


def replaces_itself(attacker: Attacker) -> None:
    """Joins, and becomes a program without a hook that keeps the GPU busy."""
    folder = attacker.socket_path(attacker.allocation_id).parent
    hooked = {"LD_PRELOAD": str(hook_library()), "EDGESHARE_HOOK_DIR": str(folder)}
    program = subprocess.Popen(
        [sys.executable, "-c", REPLACED, BURN], env={**os.environ, **hooked}, stdout=subprocess.DEVNULL
    )
    try:
        attacker.over.wait()
    finally:
        program.kill()
        program.wait(PATIENCE_S)


ACTS: dict[str, Callable[[Attacker], None]] = {
    "malformed records": Attacker.malformed,
    "stale records": Attacker.stale,
    "a flood": Attacker.flood,
    "a flood over 16 connections": lambda attacker: attacker.flood(16),
    "a flood over 64 connections": lambda attacker: attacker.flood(64),
    "unread answers": Attacker.deaf,
    "slices that are kept": Attacker.keeps,
    "long drains": Attacker.drains,
    "lies about usage": Attacker.lies,
    "lies about memory": Attacker.lies_about_memory,
    "memory that is refused": Attacker.asks_for_memory,
    "memory that is refused, 200 times a second": lambda attacker: attacker.asks_for_memory(0.005),
    "memory that is refused, without a pause": lambda attacker: attacker.asks_for_memory(0),
    "connections": Attacker.crowd,
    "half-closed sockets": Attacker.half_closes,
    "noise on the gRPC sockets": babbles,
    "descriptors that linger": lingers,
    "HELLO, and then another program": replaces_itself,
}
"""What each of them is called."""
