"""Commands for memory of pools and of graphs."""

from ctypes import byref, c_size_t, c_uint64, c_void_p

from driver import AllocNode, Location, PoolProps, cu, got, things

RESERVED = 5
"""CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT"""


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
