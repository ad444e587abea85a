"""Keeps the GPU busy with 1 ms kernels for argv[2] seconds, through NVIDIA's bindings. argv[1] is the kernel's PTX."""

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

from cuda.bindings import driver as cu


def call(answer: tuple[Any, ...]) -> Any:
    """The value of a call that must have succeeded."""
    assert answer[0] == cu.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) == 2 else None


call(cu.cuInit(0))
call(cu.cuCtxSetCurrent(call(cu.cuDevicePrimaryCtxRetain(0))))
spin = call(cu.cuModuleGetFunction(call(cu.cuModuleLoadData(Path(sys.argv[1]).read_bytes() + b"\0")), b"spin"))
end_s = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end_s:
    call(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, 0, ((1_000_000,), (ctypes.c_uint64,)), 0))
call(cu.cuCtxSynchronize())
