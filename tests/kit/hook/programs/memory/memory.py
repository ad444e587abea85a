"""A program that gets memory in every way: one command a line on stdin (a function's name and integers), one answer a
line on stdout ("= result value …"), the driver's result first."""

import ctypes
import os
import socket
import sys
from contextlib import suppress
from ctypes import POINTER, byref, c_char, c_int, c_size_t, c_uint, c_uint64, c_void_p, sizeof
from pathlib import Path

cu = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20
RESERVED = 5
"""CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT"""

HOOK_FD = 700
"""The hook's descriptors are no smaller."""
REQUEST = b"\x04\x00\x08\x00\x00\x00\x00\x00"

things: list[int] = []
"""Handles and addresses in the order in which they were got; commands name them by their index."""


class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class ArrayDescriptor(ctypes.Structure):
    _fields_ = [("width", c_size_t), ("height", c_size_t), ("format", c_int), ("channels", c_uint)]


class Array3dDescriptor(ctypes.Structure):
    _fields_ = [
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
        ("format", c_int),
        ("channels", c_uint),
        ("flags", c_uint),
    ]


class AllocationProp(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("win32", c_void_p), ("flags", c_char * 8)]


class PoolProps(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("handles", c_int),
        ("location", Location),
        ("win32", c_void_p),
        ("most", c_size_t),
        ("rest", c_char * 56),
    ]


class AllocNode(ctypes.Structure):
    _fields_ = [
        ("pool", PoolProps),
        ("access", c_void_p),
        ("accesses", c_size_t),
        ("bytes", c_size_t),
        ("pointer", c_uint64),
    ]


class ExternalMemory(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("padding", c_int),
        ("fd", c_int),
        ("rest", c_char * 12),
        ("size", c_uint64),
        ("flags", c_uint),
        ("reserved", c_uint * 16),
    ]


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", c_char * 64)]


def got(result: int, thing: "ctypes._SimpleCData[int] | c_void_p") -> int:
    """Keeps what a call has made."""
    if result == 0:
        things.append(thing.value or 0)
    return result


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


def chunk(size: int, location: int, device: int) -> int:
    """cuMemCreate: location 1 is a device, 2 the host."""
    handle = c_uint64()
    prop = AllocationProp(1, 1, Location(location, device), None, b"")
    return got(cu.cuMemCreate(byref(handle), c_size_t(size), byref(prop), c_uint64(0)), handle)


def release(index: int) -> int:
    return cu.cuMemRelease(c_uint64(things[index]))


def addresses(size: int) -> int:
    place = c_uint64()
    return got(cu.cuMemAddressReserve(byref(place), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0)), place)


def map(place: int, offset: int, size: int, handle: int) -> int:  # noqa: A001  # named as the driver does
    where = c_uint64(things[place] + offset)
    return cu.cuMemMap(where, c_size_t(size), c_size_t(0), c_uint64(things[handle]), c_uint64(0))


def unmap(place: int, offset: int, size: int) -> int:
    return cu.cuMemUnmap(c_uint64(things[place] + offset), c_size_t(size))


def retain(place: int, offset: int) -> int:
    handle = c_uint64()
    return got(cu.cuMemRetainAllocationHandle(byref(handle), c_void_p(things[place] + offset)), handle)


def export(handle: int) -> int:
    fd = c_int()
    return got(cu.cuMemExportToShareableHandle(byref(fd), c_uint64(things[handle]), 1, c_uint64(0)), fd)


def import_(fd: int) -> int:
    handle = c_uint64()
    return got(cu.cuMemImportFromShareableHandle(byref(handle), c_void_p(things[fd]), 1), handle)


def ipc_export(index: int) -> int:
    """The handle goes to stdout before the answer, in hexadecimal digits."""
    handle = IpcHandle()
    result = cu.cuIpcGetMemHandle(byref(handle), c_uint64(things[index]))
    print(bytes(handle).hex(), flush=True)
    return result


def ipc_open() -> int:
    """The handle follows on stdin."""
    memory = c_uint64()
    handle = IpcHandle.from_buffer_copy(bytes.fromhex(sys.stdin.readline()))
    return got(cu.cuIpcOpenMemHandle_v2(byref(memory), handle, 1), memory)


def ipc_close(index: int) -> int:
    return cu.cuIpcCloseMemHandle(c_uint64(things[index]))


def external(size: int) -> int:
    """Memory of something that is not CUDA, as far as the hook can see: an exported handle stands in for it."""
    handle, fd, memory = c_uint64(), c_int(), c_void_p()
    prop = AllocationProp(1, 1, Location(2, 0), None, b"")
    return (
        cu.cuMemCreate(byref(handle), c_size_t(size), byref(prop), c_uint64(0))
        or cu.cuMemExportToShareableHandle(byref(fd), handle, 1, c_uint64(0))
        or got(cu.cuImportExternalMemory(byref(memory), byref(ExternalMemory(1, 0, fd.value, b"", size))), memory)
    )


def free_external(index: int) -> int:
    return cu.cuDestroyExternalMemory(c_void_p(things[index]))


def pool(threshold: int) -> int:
    made = c_void_p()
    result = cu.cuMemPoolCreate(byref(made), byref(PoolProps(1, 0, Location(1, 0), None, 0, b"")))
    return got(result or cu.cuMemPoolSetAttribute(made, 4, byref(c_uint64(threshold))), made)


def end_pool(index: int) -> int:
    return cu.cuMemPoolDestroy(c_void_p(things[index]))


def reserved(index: int) -> tuple[int, int]:
    value = c_uint64()
    return cu.cuMemPoolGetAttribute(c_void_p(things[index]), RESERVED, byref(value)), value.value


def trim(index: int, keep: int) -> int:
    return cu.cuMemPoolTrimTo(c_void_p(things[index]), c_size_t(keep))


def from_pool(index: int, size: int) -> int:
    memory = c_uint64()
    return got(cu.cuMemAllocFromPoolAsync(byref(memory), c_size_t(size), c_void_p(things[index]), None), memory)


def asynchronous(size: int) -> int:
    memory = c_uint64()
    return got(cu.cuMemAllocAsync(byref(memory), c_size_t(size), None), memory)


def free_async(index: int) -> int:
    return cu.cuMemFreeAsync(c_uint64(things[index]), None)


def sync() -> int:
    return cu.cuCtxSynchronize()


def sync_event() -> int:
    event = c_void_p()
    return cu.cuEventCreate(byref(event), 0) or cu.cuEventRecord(event, None) or cu.cuEventSynchronize(event)


def reset() -> int:
    return cu.cuDevicePrimaryCtxReset_v2(0)


def graph(size: int) -> int:
    """An executable graph that allocates and frees so much."""
    made, node, ready = c_void_p(), c_void_p(), c_void_p()
    wanted = AllocNode(PoolProps(1, 0, Location(1, 0), None, 0, b""), None, 0, size, 0)
    result = (
        cu.cuGraphCreate(byref(made), 0)
        or cu.cuGraphAddMemAllocNode(byref(node), made, None, c_size_t(0), byref(wanted))
        or cu.cuGraphAddMemFreeNode(byref(node), made, byref(node), c_size_t(1), c_uint64(wanted.pointer))
        or cu.cuGraphInstantiateWithFlags(byref(ready), made, c_uint64(0))
    )
    return got(result, ready)


def captured(size: int) -> int:
    """The same by a capture."""
    stream, made, ready, memory = c_void_p(), c_void_p(), c_void_p(), c_uint64()
    result = (
        cu.cuStreamCreate(byref(stream), 1)
        or cu.cuStreamBeginCapture_v2(stream, 0)
        or cu.cuMemAllocAsync(byref(memory), c_size_t(size), stream)
        or cu.cuMemFreeAsync(memory, stream)
        or cu.cuStreamEndCapture(stream, byref(made))
        or cu.cuGraphInstantiateWithFlags(byref(ready), made, c_uint64(0))
    )
    return got(result, ready)


def launch(index: int) -> int:
    return cu.cuGraphLaunch(c_void_p(things[index]), None)


def upload(index: int) -> int:
    return cu.cuGraphUpload(c_void_p(things[index]), None)


def trim_graphs() -> int:
    return cu.cuDeviceGraphMemTrim(0)


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


def main() -> None:
    assert (sizeof(AllocationProp), sizeof(PoolProps), sizeof(ExternalMemory)) == (32, 88, 104)
    cu.cuMemAlloc_v2.argtypes = [POINTER(c_uint64), c_size_t]
    print("ready", flush=True)
    while line := sys.stdin.readline():
        name, *numbers = line.split()
        answer = globals()[name](*(int(number) for number in numbers))
        words = answer if isinstance(answer, tuple) else (answer,)
        print("=", *words, flush=True)
    os._exit(0)


main()
