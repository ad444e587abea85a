"""A program that gets memory in every way: one command a line on stdin (a function's name and integers), one answer a
line on stdout ("= result value …"), the driver's result first. Functions: here, in `pools.py` and `virtual.py`."""

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from ctypes import POINTER, byref, c_size_t, c_uint64, c_void_p, sizeof
from pathlib import Path

import pools
import virtual
from driver import (
    MIB,
    AllocationProp,
    Array3dDescriptor,
    ArrayDescriptor,
    ExternalMemory,
    Location,
    PoolProps,
    cu,
    got,
    things,
)

HOOK_FD = 700
"""The hook's descriptors are no smaller."""
REQUEST = b"\x04\x00\x08\x00\x00\x00\x00\x00"


def start(device: int = 0) -> int:
    context = c_void_p()
    return cu.cuInit(0) or cu.cuDevicePrimaryCtxRetain(byref(context), device) or cu.cuCtxSetCurrent(context)


def init() -> int:
    return cu.cuInit(0)


def create(device: int) -> int:
    return got(cu.cuCtxCreate_v2(byref(context := c_void_p()), 0, device), context)


def destroy(index: int) -> int:
    return cu.cuCtxDestroy_v2(c_void_p(things[index]))


def limit(which: int, value: int) -> int:
    return cu.cuCtxSetLimit(which, c_size_t(value))


def info() -> tuple[int, int, int]:
    free, total = c_size_t(), c_size_t()
    result = cu.cuMemGetInfo_v2(byref(free), byref(total))
    return result, free.value, total.value


def plain(size: int) -> int:
    return got(cu.cuMemAlloc_v2(byref(memory := c_uint64()), c_size_t(size)), memory)


def managed(size: int) -> int:
    return got(cu.cuMemAllocManaged(byref(memory := c_uint64()), c_size_t(size), 1), memory)


def pitched(width: int, height: int) -> tuple[int, int]:
    memory, pitch = c_uint64(), c_size_t()
    result = got(cu.cuMemAllocPitch_v2(byref(memory), byref(pitch), c_size_t(width), c_size_t(height), 4), memory)
    return result, pitch.value


def free(index: int) -> int:
    return cu.cuMemFree_v2(c_uint64(things[index]))


def host(size: int) -> int:
    return got(cu.cuMemHostAlloc(byref(memory := c_void_p()), c_size_t(size), 0), memory)


def free_host(index: int) -> int:
    return cu.cuMemFreeHost(c_void_p(things[index]))


def array(width: int, height: int) -> int:
    made = c_void_p()
    return got(cu.cuArrayCreate_v2(byref(made), byref(ArrayDescriptor(width, height, 0x20, 1))), made)


def array3d(width: int, height: int, depth: int, flags: int) -> int:
    made = c_void_p()
    return got(cu.cuArray3DCreate_v2(byref(made), byref(Array3dDescriptor(width, height, depth, 0x20, 1, flags))), made)


def mipmap(width: int, height: int, levels: int) -> int:
    made = c_void_p()
    shape = Array3dDescriptor(width, height, 0, 0x20, 1, 0)
    return got(cu.cuMipmappedArrayCreate(byref(made), byref(shape), levels), made)


def free_array(index: int) -> int:
    return cu.cuArrayDestroy(c_void_p(things[index]))


def free_mipmap(index: int) -> int:
    return cu.cuMipmappedArrayDestroy(c_void_p(things[index]))


def sync() -> int:
    return cu.cuCtxSynchronize()


def sync_event() -> int:
    event = c_void_p()
    return cu.cuEventCreate(byref(event), 0) or cu.cuEventRecord(event, None) or cu.cuEventSynchronize(event)


def reset() -> int:
    return cu.cuDevicePrimaryCtxReset_v2(0)


def nowhere() -> int:
    """Calls with nowhere to put what they make; the results in one number."""
    shape, prop = Array3dDescriptor(16, 16, 0, 0x20, 1, 0), AllocationProp(1, 1, Location(1, 0), None, b"")
    results = (
        cu.cuMemAlloc_v2(None, c_size_t(4096)),
        cu.cuMemAllocPitch_v2(None, None, c_size_t(64), c_size_t(64), 4),
        cu.cuMemAllocManaged(None, c_size_t(4096), 1),
        cu.cuMemAllocAsync(None, c_size_t(4096), None),
        cu.cuArrayCreate_v2(None, byref(shape)),
        cu.cuArray3DCreate_v2(None, byref(shape)),
        cu.cuArray3DCreate_v2(byref(c_void_p()), None),
        cu.cuMipmappedArrayCreate(None, byref(shape), 1),
        cu.cuMemCreate(None, c_size_t(2 * MIB), byref(prop), c_uint64(0)),
        cu.cuMemCreate(byref(c_uint64()), c_size_t(2 * MIB), None, c_uint64(0)),
        cu.cuImportExternalMemory(None, None),
        cu.cuMemPoolCreate(None, None),
        cu.cuMemGetInfo_v2(None, None),
        cu.cuMemGetInfo_v2(byref(c_size_t()), None),
        cu.cuDeviceTotalMem_v2(None, 0),
        cu.cuDeviceTotalMem_v2(byref(c_size_t()), 17),
        cu.cuMemFree_v2(c_uint64(0)),
        cu.cuMemFree_v2(c_uint64(4096)),
        cu.cuMemFreeAsync(c_uint64(4096), None),
        cu.cuMemFreeHost(None),
        cu.cuMemRelease(c_uint64(0)),
        cu.cuMemUnmap(c_uint64(4096), c_size_t(4096)),
        cu.cuMemPoolDestroy(None),
        cu.cuMemPoolTrimTo(None, c_size_t(0)),
    )
    return sum(result << 10 * place for place, result in enumerate(results))


def heir() -> int:
    """Forks a child that keeps what it inherited, sockets too, for as long as its parent lives."""
    theirs, ours = os.pipe()
    if os.fork() == 0:
        os.close(ours)
        os.read(theirs, 1)
        os._exit(0)
    os.close(theirs)
    os.set_inheritable(ours, False)
    return 0


def flood() -> int:
    """Fills the hook's socket with requests for a slice, until it takes no more."""
    ours = [int(link.name) for link in Path("/proc/self/fd").iterdir() if int(link.name) >= HOOK_FD]
    with socket.socket(fileno=os.dup(*ours)) as connection, suppress(BlockingIOError):
        while True:
            connection.send(REQUEST, socket.MSG_DONTWAIT)
    return 0


def command(name: str) -> Callable[..., int | tuple[int, ...]]:
    """The function of this name, here or beside."""
    return next(vars(module)[name] for module in (sys.modules[__name__], pools, virtual) if name in vars(module))


def main() -> None:
    assert (sizeof(AllocationProp), sizeof(PoolProps), sizeof(ExternalMemory)) == (32, 88, 104)
    cu.cuMemAlloc_v2.argtypes = [POINTER(c_uint64), c_size_t]
    print("ready", flush=True)
    while line := sys.stdin.readline():
        name, *numbers = line.split()
        answer = command(name)(*(int(number) for number in numbers))
        words = answer if isinstance(answer, tuple) else (answer,)
        print("=", *words, flush=True)
    os._exit(0)


main()
