"""A GPU's memory is a number that all its processes draw on."""

from collections.abc import Callable

import pytest

from tests.kit.machine.simulated import MIB, Simulated


@pytest.mark.misuses("cuMemFree_v2: unknown address")
def test_allocations_end_exactly_at_capacity(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, memory_mib=1024)
    script = """
cu.start()
free, total = cu.memory()
place = ctypes.c_uint64()
last = cu.alloc(free - 1024)
codes = [cu.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(size)) for size in (1025, 1024, 1)]
left = cu.memory()[0]
cu.ok("cuMemFree_v2", last)
result([free, total, codes, left, cu.memory()[0], cu.cuMemFree_v2(last), cu.cuMemFree_v2(ctypes.c_uint64(0))])
"""
    free, total, codes, left, after, again, nothing = simulated.python(script).result()
    assert (free, total) == ((1024 - 256) * MIB, 1024 * MIB)
    assert codes == [2, 0, 2]
    assert (left, after) == (0, free - 1024)
    assert (again, nothing) == (1, 0)


def test_a_context_needs_room_of_its_own(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, memory_mib=700)
    script = """
cu.start()
second = cu.out("cuCtxCreate_v2", ctypes.c_void_p, 0, 0)
place = ctypes.c_void_p()
full = cu.cuCtxCreate_v2(ctypes.byref(place), 0, 0)
cu.ok("cuCtxDestroy_v2", second)
result([full, cu.cuCtxCreate_v2(ctypes.byref(place), 0, 0)])
"""
    assert simulated.python(script).result() == [2, 0]


def test_processes_see_each_others_allocations(simulated: Simulated) -> None:
    holder = simulated.python('cu.start(); cu.alloc(600 << 20); print("holds", flush=True); time.sleep(60)')
    assert holder.line() == "holds"
    script = """
cu.start()
place = ctypes.c_uint64()
result([cu.memory()[0], cu.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(1000 << 20))])
"""
    assert simulated.python(script).result() == [(2048 - 600 - 2 * 256) * MIB, 2]


def test_every_kind_of_device_memory_counts_and_host_memory_does_not(simulated: Simulated) -> None:
    script = """
cu.start()
free = cu.memory()[0]
def taken(call):
    before = cu.memory()[0]
    call()
    return (before - cu.memory()[0]) >> 20
place, pitch = ctypes.c_uint64(), ctypes.c_size_t()
mib = 1 << 20
result([taken(lambda: cu.alloc(3 * mib)),
        taken(lambda: cu.ok("cuMemAllocPitch_v2", ctypes.byref(place), ctypes.byref(pitch), ctypes.c_size_t(100),
                            ctypes.c_size_t(2 * mib // 512), 4)),
        taken(lambda: cu.out("cuMemAllocManaged", ctypes.c_uint64, ctypes.c_size_t(5 * mib), 1)),
        taken(lambda: cu.out("cuMemAllocHost_v2", ctypes.c_void_p, ctypes.c_size_t(7 * mib))),
        taken(lambda: cu.out("cuMemHostAlloc", ctypes.c_void_p, ctypes.c_size_t(7 * mib), 0))])
"""
    assert simulated.python(script).result() == [3, 2, 5, 0, 0]


def test_an_integrated_gpu_shares_its_memory_with_the_host(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, model="orin")
    script = """
cu.start()
before = cu.memory()[0]
cu.out("cuMemAllocHost_v2", ctypes.c_void_p, ctypes.c_size_t(7 << 20))
result([(before - cu.memory()[0]) >> 20, cu.out("cuDeviceGetAttribute", ctypes.c_int, 18, 0).value])
"""
    assert simulated.python(script).result() == [7, 1]


@pytest.mark.misuses("cuMemFree_v2: unknown address", "module_unload: destroyed module")
def test_a_context_gives_its_memory_back_when_it_ends(simulated: Simulated) -> None:
    script = """
cu.start()
free = cu.memory()[0]
second = cu.out("cuCtxCreate_v2", ctypes.c_void_p, 0, 0)
pointer = cu.alloc(100 << 20)
module = cu.module()
cu.ok("cuCtxDestroy_v2", second)
result([free == cu.memory()[0], cu.cuMemFree_v2(pointer), cu.cuModuleUnload(module)])
"""
    assert simulated.python(script).result() == [True, 1, 400]


def test_much_more_can_be_had_than_the_machine_has(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, model="h100", memory_mib=1 << 20)
    script = """
cu.start()
pointer = cu.alloc(1000 << 30)
end = ctypes.c_uint64(pointer.value + (1000 << 30) - 8)
back = ctypes.create_string_buffer(8)
cu.ok("cuMemcpyHtoD_v2", end, b"12345678", ctypes.c_size_t(8))
cu.ok("cuMemcpyDtoH_v2", back, end, ctypes.c_size_t(8))
result(back.raw.decode())
"""
    assert simulated.python(script).result() == "12345678"


def test_addresses_are_known(simulated: Simulated) -> None:
    script = """
context = cu.start()
pointer = cu.alloc(1000)
host = cu.out("cuMemAllocHost_v2", ctypes.c_void_p, ctypes.c_size_t(64))
inside = ctypes.c_uint64(pointer.value + 999)
base, size = ctypes.c_uint64(), ctypes.c_size_t()
cu.ok("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), inside)
def attribute(number, address, kind=ctypes.c_uint64):
    place = kind()
    return [cu.cuPointerGetAttribute(ctypes.byref(place), number, address), place.value]
kinds = (ctypes.c_int * 2)(2, 9)
memory, ordinal = ctypes.c_uint(9), ctypes.c_int(9)
places = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(ordinal))
cu.ok("cuPointerGetAttributes", 2, kinds, places, ctypes.c_uint64(4096))
result([base.value == pointer.value, size.value, attribute(2, inside), attribute(2, ctypes.c_uint64(host.value)),
        attribute(1, inside)[1] == context.value, attribute(9, inside), attribute(2, ctypes.c_uint64(4096))[0],
        memory.value, ordinal.value,
        cu.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer.value + 1000))])
"""
    assert simulated.python(script).result() == [True, 1000, [0, 2], [0, 1], True, [0, 0], 1, 0, -2, 500]
