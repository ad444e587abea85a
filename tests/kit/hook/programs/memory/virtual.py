"""Commands for virtual memory, and for memory of other processes and of what is not CUDA."""

import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from driver import AllocationProp, ExternalMemory, IpcHandle, Location, cu, got, things


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
