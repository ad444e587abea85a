"""NVIDIA's Python bindings in depth. Prints a JSON object: for each part, what the driver answered.

No part depends on the cap but ``memory``; argv[1] is the kernel's PTX.
"""

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

from cuda.bindings import driver as cu

MIB = 1 << 20


def call(answer: tuple[Any, ...]) -> Any:
    """The value of a call that must have succeeded."""
    assert answer[0] == cu.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) == 2 else answer[1:]


def launch(ns: int, stream: Any) -> None:
    call(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, ((ns,), (ctypes.c_uint64,)), 0))


def streams() -> list[Any]:
    flags = cu.CUstream_flags.CU_STREAM_NON_BLOCKING
    _, highest = call(cu.cuCtxGetStreamPriorityRange())
    made = [call(cu.cuStreamCreateWithPriority(flags, highest)) for _ in range(8)]
    for number in range(64):
        launch(50_000, made[number % 8])
    for stream in made:
        call(cu.cuStreamSynchronize(stream))
    idle = [cu.cuStreamQuery(stream)[0].name for stream in made]
    for stream in made:
        call(cu.cuStreamDestroy(stream))
    return idle


def events() -> list[Any]:
    stream = call(cu.cuStreamCreate(0))
    begin, end = call(cu.cuEventCreate(0)), call(cu.cuEventCreate(0))
    call(cu.cuEventRecord(begin, stream))
    launch(100_000_000, stream)
    call(cu.cuEventRecord(end, stream))
    pending = cu.cuEventQuery(end)[0].name
    call(cu.cuStreamWaitEvent(cu.CUstream(0), end, 0))
    call(cu.cuEventSynchronize(end))
    return [pending, cu.cuEventQuery(end)[0].name, call(cu.cuEventElapsedTime(begin, end)) >= 100]


def graphs() -> list[Any]:
    stream = call(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
    memory = call(cu.cuMemAlloc(4096))
    call(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    for _ in range(10):
        launch(20_000, stream)
    call(cu.cuMemsetD8Async(memory, 7, 4096, stream))
    graph = call(cu.cuStreamEndCapture(stream))
    _, nodes = call(cu.cuGraphGetNodes(graph))
    executable = call(cu.cuGraphInstantiate(graph, 0))
    for _ in range(20):
        call(cu.cuGraphLaunch(executable, stream))
    call(cu.cuStreamSynchronize(stream))
    back = bytearray(4096)
    call(cu.cuMemcpyDtoH(back, memory, 4096))
    call(cu.cuGraphExecDestroy(executable))
    call(cu.cuGraphDestroy(graph))
    call(cu.cuMemFree(memory))
    return [nodes, back == bytes([7]) * 4096]


def pools() -> list[Any]:
    stream = call(cu.cuStreamCreate(0))
    properties = cu.CUmemPoolProps()
    properties.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    pool = call(cu.cuMemPoolCreate(properties))
    for size in (1, 2, 4):
        memory = call(cu.cuMemAllocFromPoolAsync(size * MIB, pool, stream))
        call(cu.cuMemsetD32Async(memory, 1, size * MIB // 4, stream))
        call(cu.cuMemFreeAsync(memory, stream))
        memory = call(cu.cuMemAllocAsync(size * MIB, stream))
        call(cu.cuMemFreeAsync(memory, stream))
    call(cu.cuStreamSynchronize(stream))
    call(cu.cuMemPoolTrimTo(pool, 0))
    used = call(cu.cuMemPoolGetAttribute(pool, cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
    call(cu.cuMemPoolDestroy(pool))
    return [int(used)]


def virtual_memory() -> list[Any]:
    properties = cu.CUmemAllocationProp()
    properties.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    flags = cu.CUmemAllocationGranularity_flags
    grain = call(cu.cuMemGetAllocationGranularity(properties, flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM))
    size = 4 * grain
    address = call(cu.cuMemAddressReserve(16 * size, 0, cu.CUdeviceptr(0), 0))
    handle = call(cu.cuMemCreate(size, properties, 0))
    call(cu.cuMemMap(address, size, 0, handle, 0))
    access = cu.CUmemAccessDesc()
    access.location = properties.location
    access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    call(cu.cuMemSetAccess(address, size, [access], 1))
    call(cu.cuMemsetD8(address, 3, size))
    back = bytearray(16)
    call(cu.cuMemcpyDtoH(back, address, 16))
    call(cu.cuMemUnmap(address, size))
    call(cu.cuMemRelease(handle))
    call(cu.cuMemAddressFree(address, 16 * size))
    too_much = cu.cuMemCreate(1 << 40, properties, 0)[0].name
    return [back == bytes([3]) * 16, too_much]


def memory() -> list[Any]:
    """Takes blocks of 64 MiB until it is refused: [refusal, MiB, free, total, total of the device]."""
    blocks = []
    while True:
        answer = cu.cuMemAlloc(64 * MIB)
        if answer[0] != cu.CUresult.CUDA_SUCCESS:
            break
        blocks.append(answer[1])
    free, total = call(cu.cuMemGetInfo())
    of_device = call(cu.cuDeviceTotalMem(0))
    for block in blocks:
        call(cu.cuMemFree(block))
    return [answer[0].name, 64 * len(blocks), free // MIB, total // MIB, of_device // MIB]


call(cu.cuInit(0))
context = call(cu.cuDevicePrimaryCtxRetain(0))
call(cu.cuCtxSetCurrent(context))
spin = call(cu.cuModuleGetFunction(call(cu.cuModuleLoadData(Path(sys.argv[1]).read_bytes() + b"\0")), b"spin"))
answers: dict[str, list[Any]] = {}
for part in (streams, events, graphs, pools, virtual_memory, memory):
    try:
        answers[part.__name__] = part()
    except RuntimeError as error:  # the bindings' way to say that this driver lacks a function
        answers[part.__name__] = [str(error)]
print(json.dumps(answers))
