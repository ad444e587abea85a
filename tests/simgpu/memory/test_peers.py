"""Several GPUs in one process."""

from collections.abc import Callable

import pytest

from tests.kit.machine.simulated import MIB, Simulated


@pytest.mark.misuses("cuCtxEnablePeerAccess: unknown context")
def test_contexts_on_two_gpus_may_use_each_others_memory(simulated: Simulated) -> None:
    script = """
first = cu.start(0)
second = cu.start(1)
can = [cu.out("cuDeviceCanAccessPeer", ctypes.c_int, *pair).value for pair in ((0, 1), (1, 0), (0, 0))]
rank = [cu.out("cuDeviceGetP2PAttribute", ctypes.c_int, each, 0, 1).value for each in (1, 2, 3, 4)]
codes = [cu.cuCtxDisablePeerAccess(first), cu.cuCtxEnablePeerAccess(first, 1), cu.cuCtxEnablePeerAccess(first, 0),
         cu.cuCtxEnablePeerAccess(first, 0), cu.cuCtxEnablePeerAccess(second, 0), cu.cuCtxDisablePeerAccess(first),
         cu.cuCtxDisablePeerAccess(first), cu.cuCtxEnablePeerAccess(None, 0),
         cu.cuDeviceGetP2PAttribute(ctypes.byref(ctypes.c_int()), 2, 0, 0)]
result([can, rank, codes])
"""
    assert simulated.python(script).result() == [[1, 1, 0], [0, 1, 0, 1], [705, 1, 0, 704, 201, 0, 705, 201, 101]]


def test_an_integrated_gpu_has_no_peers(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=2, model="orin")
    script = """
first, second = cu.start(0), cu.start(1)
result([cu.out("cuDeviceCanAccessPeer", ctypes.c_int, 0, 1).value, cu.cuCtxEnablePeerAccess(first, 0)])
"""
    assert simulated.python(script).result() == [0, 217]


def test_a_copy_between_gpus_occupies_both(simulated: Simulated) -> None:
    script = """
size = ctypes.c_size_t
first = cu.start(0)
source = cu.alloc(24 << 20)
cu.ok("cuMemsetD8_v2", source, 7, size(24 << 20))
second = cu.start(1)
target = cu.alloc(24 << 20)
cu.ok("cuMemcpyPeerAsync", target, second, source, first, size(24 << 20), None)
cu.ok("cuCtxSynchronize")
cu.ok("cuCtxSetCurrent", first)
cu.ok("cuCtxSynchronize")
back = ctypes.create_string_buffer(1)
cu.ok("cuMemcpyDtoH_v2", back, ctypes.c_uint64(target.value + (24 << 20) - 1), size(1))
result(back.raw[0])
"""
    assert simulated.python(script).result() == 7
    for gpu in (0, 1):
        longest = max(each.end_ns - each.begin_ns for each in simulated.log(gpu) if each.kind == "copy")
        assert longest == 1000 + 24 * MIB // 12


def test_a_cooperative_kernel_runs_on_two_gpus(simulated: Simulated) -> None:
    script = """
class Launch(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("shape", ctypes.c_uint * 6), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("params", ctypes.c_void_p)]
length = ctypes.c_uint64(3_000_000)
params = (ctypes.c_void_p * 1)(ctypes.addressof(length))
launches = (Launch * 2)()
for device in (0, 1):
    cu.start(device)
    launches[device] = Launch(cu.function(), (1, 1, 1, 1, 1, 1), 0, cu.stream(), ctypes.addressof(params))
cu.ok("cuLaunchCooperativeKernelMultiDevice", launches, 2, 0)
for device in (0, 1):
    cu.start(device)
    cu.ok("cuCtxSynchronize")
twice = (Launch * 2)(launches[0], launches[0])
launches[1].shape[0] = 2
result([cu.cuLaunchCooperativeKernelMultiDevice(twice, 2, 0), cu.cuLaunchCooperativeKernelMultiDevice(launches, 2, 0),
        cu.cuLaunchCooperativeKernelMultiDevice(launches, 3, 0), cu.cuLaunchCooperativeKernelMultiDevice(None, 1, 0)])
"""
    assert simulated.python(script).result() == [1, 1, 1, 1]
    assert [gpu.busy_ns for gpu in simulated.machine.gpus()] == [3_000_000, 3_000_000]
