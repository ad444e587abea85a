"""The simulated driver through ctypes, as the scripts of these tests see it."""

import ctypes
import json
import socket
from collections.abc import Callable
from typing import Any

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 0, 1, 2, 3
NO_DEVICE, INVALID_DEVICE, INVALID_IMAGE, INVALID_CONTEXT = 100, 101, 200, 201
INVALID_PTX, INVALID_HANDLE, NOT_FOUND, NOT_READY = 218, 400, 500, 600
DESTROYED, LAUNCH_FAILED, NOT_SUPPORTED = 709, 719, 801
CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED, CAPTURE_UNJOINED, CAPTURE_IMPLICIT = 900, 901, 904, 906

HEAD = b".version 6.0\n.target sm_50\n.address_size 64\n"
SPIN = (
    HEAD
    + b"""
.visible .global .align 4 .u32 counters[16];
.visible .entry spin(.param .u64 ns) { // simgpu: duration_ns = param 0
ret; }
.visible .entry blocks(.param .u32 a, .param .u64 b, .param .align 8 .b8 c[24], .param .f32 d) {
    // simgpu: duration_ns = 1000 + 2 * blocks * threads + param 1
    ret;
}
.entry silent() { ret; }
"""
)


class Cuda:
    """The library; each call returns its CUresult."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def ok(self, name: str, *arguments: object) -> None:
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name}: {code}"

    def out(self, name: str, kind: Callable[[], Any], *arguments: object) -> Any:
        """Calls a function whose first parameter is written to; returns that."""
        value = kind()
        self.ok(name, ctypes.byref(value), *arguments)
        return value

    def out_of(self, name: str, kind: Callable[[], Any], *arguments: object) -> Any:
        """The same for a function whose last parameter is written to."""
        value = kind()
        self.ok(name, *arguments, ctypes.byref(value))
        return value

    def start(self, device: int = 0) -> Any:
        """Initialises the driver; a primary context is current."""
        self.ok("cuInit", 0)
        context = self.out("cuDevicePrimaryCtxRetain", ctypes.c_void_p, device)
        self.ok("cuCtxSetCurrent", context)
        return context

    def module(self, text: bytes = SPIN) -> Any:
        return self.out("cuModuleLoadData", ctypes.c_void_p, text)

    def function(self, name: bytes = b"spin", module: Any = None) -> Any:
        return self.out("cuModuleGetFunction", ctypes.c_void_p, module or self.module(), name)

    def launch(self, function: Any, ns: int, stream: Any = None, entry: str = "cuLaunchKernel") -> Any:
        value = ctypes.c_uint64(ns)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(value))
        return getattr(self.library, entry)(function, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)

    def stream(self, flags: int = 0) -> Any:
        return self.out("cuStreamCreate", ctypes.c_void_p, flags)

    def event(self, flags: int = 0) -> Any:
        return self.out("cuEventCreate", ctypes.c_void_p, flags)

    def elapsed_ms(self, start: Any, end: Any) -> Any:
        return self.out("cuEventElapsedTime", ctypes.c_float, start, end).value

    def alloc(self, size: int) -> Any:
        return self.out("cuMemAlloc_v2", ctypes.c_uint64, ctypes.c_size_t(size))

    def memory(self) -> tuple[int, int]:
        """(free, total) bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.ok("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value


cu = Cuda()


def result(value: object) -> None:
    print(json.dumps(value), flush=True)


def give(path: str, fd: int) -> None:
    """Hands a descriptor to the first that asks at a socket; says so on stdout when it can be asked."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        print("ready", flush=True)
        with door.accept()[0] as peer:
            socket.send_fds(peer, [b"x"], [fd])


def take(path: str) -> int:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        return socket.recv_fds(peer, 1, 1)[1][0]
