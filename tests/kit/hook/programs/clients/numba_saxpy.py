"""Numba compiles a kernel to PTX and launches it, on streams and with events."""

import warnings

import numpy as np
from numba import cuda

warnings.simplefilter("ignore")  # of a small grid


@cuda.jit
def saxpy(a, x, y):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


host = np.arange(1 << 16, dtype=np.float32)
stream = cuda.stream()
begin, end = cuda.event(), cuda.event()
x, y = cuda.to_device(host, stream), cuda.to_device(host, stream)
begin.record(stream)
for _ in range(50):
    saxpy[256, 256, stream](np.float32(2), x, y)
end.record(stream)
end.synchronize()
stream.synchronize()
print("took time:", cuda.event_elapsed_time(begin, end) > 0)
print("unchanged:", bool((x.copy_to_host(stream=stream) == host).all()))
pinned = cuda.pinned_array(1024, dtype=np.float32)
cuda.to_device(pinned).copy_to_host(pinned)
cuda.synchronize()
print(cuda.get_current_device().name)
