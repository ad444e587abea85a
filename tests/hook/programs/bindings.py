"""A CUDA program in Python: one kernel, one allocation over the cap. Prints a line before and after each."""

import ctypes
import sys
from pathlib import Path

from cuda.bindings import driver as cu


def call(result: tuple[object, ...]) -> object:
    """The value of a call that must have succeeded."""
    assert result[0] == cu.CUresult.CUDA_SUCCESS, result
    return result[1] if len(result) > 1 else None


ptx = Path(sys.argv[1]).read_bytes()
call(cu.cuInit(0))
context = call(cu.cuDevicePrimaryCtxRetain(call(cu.cuDeviceGet(0))))
call(cu.cuCtxSetCurrent(context))
spin = call(cu.cuModuleGetFunction(call(cu.cuModuleLoadData(ptx)), b"spin"))
print("launching", flush=True)
call(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, 0, ((1_000_000,), (ctypes.c_uint64,)), 0))
print("launched", flush=True)
call(cu.cuCtxSynchronize())
print(cu.cuMemAlloc(1025 << 20)[0].name, flush=True)
print(*cu.cuMemGetInfo()[1:], flush=True)
