"""What NVML says about the memory of the first GPU that the driver shows, before and after an allocation of 64 MiB."""

import pynvml
from cuda.bindings import driver as cu

MIB = 1 << 20
pynvml.nvmlInit()
assert cu.cuInit(0)[0] == cu.CUresult.CUDA_SUCCESS
_, context = cu.cuDevicePrimaryCtxRetain(0)
cu.cuCtxSetCurrent(context)
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
before = pynvml.nvmlDeviceGetMemoryInfo(handle)
assert cu.cuMemAlloc(64 * MIB)[0] == cu.CUresult.CUDA_SUCCESS
after = pynvml.nvmlDeviceGetMemoryInfo(handle)
print(before.total // MIB, (after.used - before.used) // MIB, (before.free - after.free) // MIB)
