"""``cuda-bindings`` of PyPI, unchanged: it finds every function with ``cuGetProcAddress``."""

import importlib.util

import pytest

from tests.kit.machine.simulated import MIB, MS, Simulated

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed: pip install cuda-bindings"
)


def test_cuda_bindings_run_kernels_and_copy(simulated: Simulated) -> None:
    script = """
from cuda.bindings import driver
def ok(returned):
    code, *rest = returned
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return rest[0] if len(rest) == 1 else rest
ok(driver.cuInit(0))
device = ok(driver.cuDeviceGet(0))
name = ok(driver.cuDeviceGetName(64, device)).split(b"\\0")[0].decode()
context = ok(driver.cuDevicePrimaryCtxRetain(device))
ok(driver.cuCtxSetCurrent(context))
module = ok(driver.cuModuleLoadData(SPIN))
function = ok(driver.cuModuleGetFunction(module, b"spin"))
stream = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
begin, end = (ok(driver.cuEventCreate(0)) for _ in range(2))
ok(driver.cuEventRecord(begin, stream))
arguments = (4_000_000,), (ctypes.c_uint64,)
for _ in range(3):
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, 0))
ok(driver.cuEventRecord(end, stream))
data, back = bytes(range(256)), bytearray(256)
pointer = ok(driver.cuMemAlloc(256))
ok(driver.cuMemcpyHtoDAsync(pointer, data, 256, stream))
ok(driver.cuMemcpyDtoHAsync(back, pointer, 256, stream))
ok(driver.cuStreamSynchronize(stream))
refused = driver.cuMemAlloc(1 << 40)[0]
free, total = ok(driver.cuMemGetInfo())
elapsed = ok(driver.cuEventElapsedTime(begin, end))
ok(driver.cuMemFree(pointer))
ok(driver.cuDevicePrimaryCtxRelease(device))
result([name, 12 <= elapsed < 1000, back == data, refused.name, total])
"""
    assert simulated.python(script, SIMGPU_TAG="bindings").result() == [
        "Tesla T4",
        True,
        True,
        "CUDA_ERROR_OUT_OF_MEMORY",
        2048 * MIB,
    ]
    process = simulated.process("bindings")
    assert process.executed_ns[0] >= 3 * 4 * MS
    assert process.entries[0] == 5
