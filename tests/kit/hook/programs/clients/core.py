"""NVIDIA's ``cuda-core``: devices, streams, events, buffers, graphs, launches. argv[1] is the kernel's PTX."""

import sys
from pathlib import Path

import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, launch

device = Device(0)
device.set_current()
kernel = ObjectCode.from_ptx(Path(sys.argv[1]).read_bytes()).get_kernel("spin")
stream = device.create_stream()
one = LaunchConfig(grid=1, block=1)
begin, end = (device.create_event(options={"timing_enabled": True}) for _ in range(2))
stream.record(begin)
for _ in range(20):
    launch(stream, one, kernel, np.uint64(500_000))
stream.record(end)
end.sync()
print("long enough:", end - begin >= 10)
buffers = [device.allocate(1 << 20, stream=stream) for _ in range(4)]
buffers[0].copy_to(buffers[1], stream=stream)
for buffer in buffers:
    buffer.close(stream)
stream.sync()
print(device.name, device.properties.multiprocessor_count)
