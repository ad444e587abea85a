"""Modules, and how functions of the driver and of modules are found and given parameters."""

import pytest

from tests.kit.machine.simulated import Simulated


@pytest.mark.misuses("launch_kernel: destroyed function", "module_unload: destroyed module")
def test_modules_have_their_functions_and_globals(simulated: Simulated) -> None:
    script = """
cu.start()
module = cu.module()
place, size = ctypes.c_uint64(), ctypes.c_size_t()
missing = cu.cuModuleGetFunction(ctypes.byref(place), module, b"nothing")
cu.ok("cuModuleGetGlobal_v2", ctypes.byref(place), ctypes.byref(size), module, b"counters")
blocks = cu.function(b"blocks", module)
offset, length = ctypes.c_size_t(), ctypes.c_size_t()
params = []
while cu.cuFuncGetParamInfo(blocks, len(params), ctypes.byref(offset), ctypes.byref(length)) == 0:
    params.append([offset.value, length.value])
name = cu.out("cuFuncGetName", ctypes.c_char_p, blocks).value.decode()
same = cu.function(b"blocks", module).value == blocks.value
bad = [cu.cuModuleLoadData(ctypes.byref(place), text) for text in
       (b"nonsense, and long enough", HEAD + b".entry k() {", HEAD + b".entry k() { // simgpu: duration_ns = x\\n }")]
library = cu.out("cuLibraryLoadData", ctypes.c_void_p, SPIN, None, None, 0, None, None, 0)
kernel = cu.out("cuLibraryGetKernel", ctypes.c_void_p, library, b"spin")
launched = cu.launch(cu.out("cuKernelGetFunction", ctypes.c_void_p, kernel), 1000)
launched += cu.launch(kernel, 1000)
cu.ok("cuModuleUnload", module)
result([missing, size.value, params, name, same, bad, launched, cu.launch(blocks, 1), cu.cuModuleUnload(module)])
"""
    assert simulated.python(script).result() == [
        500,
        64,
        [[0, 4], [8, 8], [16, 24], [40, 4]],
        "blocks",
        True,
        [200, 218, 218],
        0,
        400,
        400,
    ]


@pytest.mark.misuses("launch_kernel: destroyed function")
def test_launches_that_cannot_be_are_refused(simulated: Simulated) -> None:
    script = """
cu.start()
spin, silent = cu.function(), cu.function(b"silent")
def launch(function, *shape):
    return cu.cuLaunchKernel(function, *shape, None, None, None)
result([launch(silent, 1, 1, 1, 1, 1, 1, 0), launch(silent, 0, 1, 1, 1, 1, 1, 0),
        launch(silent, 1, 1, 1, 1025, 1, 1, 0), launch(silent, 1, 65536, 1, 1, 1, 1, 0),
        launch(silent, 1, 1, 1, 1, 1, 1, 1 << 20),
        launch(spin, 1, 1, 1, 1, 1, 1, 0), launch(ctypes.byref(ctypes.create_string_buffer(64)), 1, 1, 1, 1, 1, 1, 0)])
"""
    assert simulated.python(script).result() == [0, 1, 1, 1, 1, 1, 400]


def test_parameters_reach_the_kernel_by_pointers_and_packed(simulated: Simulated) -> None:
    script = """
cu.start()
function = cu.function(b"blocks")
class Packed(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint32), ("b", ctypes.c_uint64), ("c", ctypes.c_char * 24), ("d", ctypes.c_float)]
packed = Packed(1, 50_000, b"", 0)
size = ctypes.c_size_t(ctypes.sizeof(packed))
extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0)
pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(packed) + getattr(Packed, each).offset for each in "abcd"))
cu.ok("cuLaunchKernel", function, 10, 2, 1, 32, 1, 1, 0, None, None, extra)
cu.ok("cuLaunchKernel", function, 10, 2, 1, 32, 1, 1, 0, None, pointers, None)
both = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, pointers, extra)
cu.ok("cuCtxSynchronize")
result(both)
"""
    assert simulated.python(script).result() == 1
    lengths = [each.end_ns - each.begin_ns for each in simulated.log()]
    assert lengths == [1000 + 2 * 20 * 32 + 50_000] * 2


def test_functions_are_found_by_name_version_and_stream_kind(simulated: Simulated) -> None:
    script = """
def find(name, version, flags=0):
    place, status = ctypes.c_void_p(), ctypes.c_int()
    code = cu.cuGetProcAddress_v2(name, ctypes.byref(place), version, ctypes.c_uint64(flags), ctypes.byref(status))
    names = {ctypes.cast(getattr(cu.library, each), ctypes.c_void_p).value: each for each in
             ("cuLaunchKernel", "cuLaunchKernel_ptsz", "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds",
              "cuStreamBeginCapture", "cuStreamBeginCapture_v2", "cuGetProcAddress", "cuGetProcAddress_v2",
              "cuCtxCreate_v2", "cuCtxCreate_v3")}
    return [code, status.value, names.get(place.value)]
old = ctypes.c_void_p(7)
result([find(b"cuLaunchKernel", 12000), find(b"cuLaunchKernel", 12000, 2), find(b"cuLaunchKernel", 5000, 2),
        find(b"cuMemAlloc", 12000), find(b"cuMemcpyHtoD", 12000, 2), find(b"cuStreamBeginCapture", 10000),
        find(b"cuStreamBeginCapture", 10010), find(b"cuGetProcAddress", 11030), find(b"cuGetProcAddress", 12000),
        find(b"cuCtxCreate", 11030), find(b"cuCtxCreate", 13000), find(b"cuMemAlloc_v2", 12000), find(b"", 0),
        find(b"cuLaunchKernelEx", 11050), find(b"cuLaunchKernel", 12000, 8)[0],
        cu.cuGetProcAddress(b"nothing", ctypes.byref(old), 12000, ctypes.c_uint64(0)), old.value])
"""
    assert simulated.python(script).result() == [
        [0, 0, "cuLaunchKernel"],
        [0, 0, "cuLaunchKernel_ptsz"],
        [0, 2, None],
        [0, 0, "cuMemAlloc_v2"],
        [0, 0, "cuMemcpyHtoD_v2_ptds"],
        [0, 0, "cuStreamBeginCapture"],
        [0, 0, "cuStreamBeginCapture_v2"],
        [0, 0, "cuGetProcAddress"],
        [0, 0, "cuGetProcAddress_v2"],
        [0, 0, "cuCtxCreate_v2"],
        [0, 0, "cuCtxCreate_v3"],
        [0, 1, None],
        [0, 1, None],
        [0, 2, None],
        1,
        500,
        7,
    ]
