"""What programs link to or look up and few use: the driver's linker, textures, the profiler."""

import importlib.util

import pytest

from tests.kit.machine.simulated import MS, Simulated

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed: pip install cuda-bindings"
)

START = """
from cuda.bindings import driver as cu
def ok(returned):
    code, *rest = returned
    assert code == cu.CUresult.CUDA_SUCCESS, code
    return rest[0] if len(rest) == 1 else rest
ok(cu.cuInit(0))
ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
"""


def test_linked_ptx_is_a_module(simulated: Simulated) -> None:
    script = (
        START
        + """
link = ok(cu.cuLinkCreate(0, [], []))
empty = cu.cuLinkComplete(link)[0].name
ok(cu.cuLinkAddData(link, cu.CUjitInputType.CU_JIT_INPUT_PTX, SPIN, len(SPIN), b"spin", 0, [], []))
missing = cu.cuLinkAddFile(link, cu.CUjitInputType.CU_JIT_INPUT_PTX, b"/none/such", 0, [], [])[0].name
image, size = ok(cu.cuLinkComplete(link))
module = ok(cu.cuModuleLoadData(image))
ok(cu.cuLinkDestroy(link))
spin = ok(cu.cuModuleGetFunction(module, b"spin"))
ok(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, 0, ((2_000_000,), (ctypes.c_uint64,)), 0))
ok(cu.cuCtxSynchronize())
result([empty, missing, size > 100])
"""
    )
    assert simulated.python(script, SIMGPU_TAG="linked").result() == [
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "CUDA_ERROR_FILE_NOT_FOUND",
        True,
    ]
    assert simulated.process("linked").executed_ns[0] == 2 * MS


@pytest.mark.misuses("destroy: destroyed texture")
def test_texture_objects_hold_what_they_were_made_of(simulated: Simulated) -> None:
    script = (
        START
        + """
memory = ok(cu.cuMemAlloc(4096))
resource = cu.CUDA_RESOURCE_DESC()
resource.resType = cu.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
resource.res.linear.devPtr = memory
resource.res.linear.format = cu.CUarray_format.CU_AD_FORMAT_FLOAT
resource.res.linear.numChannels = 1
resource.res.linear.sizeInBytes = 4096
sampling = cu.CUDA_TEXTURE_DESC()
sampling.filterMode = cu.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR
texture = ok(cu.cuTexObjectCreate(resource, sampling, None))
held = int(ok(cu.cuTexObjectGetResourceDesc(texture)).res.linear.devPtr) == int(memory)
linear = ok(cu.cuTexObjectGetTextureDesc(texture)).filterMode == cu.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR
unviewed = cu.cuTexObjectGetResourceViewDesc(texture)[0].name
ok(cu.cuTexObjectDestroy(texture))
again = cu.cuTexObjectDestroy(texture)[0].name
surface = cu.cuSurfObjectCreate(resource)[0].name
ok(cu.cuProfilerStart())
ok(cu.cuProfilerStop())
result([held, linear, unviewed, again, surface])
"""
    )
    wrong = "CUDA_ERROR_INVALID_VALUE"
    assert simulated.python(script).result() == [True, True, wrong, wrong, wrong]


@pytest.mark.misuses("find_setting: unknown function")
def test_launches_as_before_cuda_4_take_what_was_set(simulated: Simulated) -> None:
    script = (
        START
        + """
spin = int(ok(cu.cuModuleGetFunction(ok(cu.cuModuleLoadData(SPIN)), b"spin")))
driver = ctypes.CDLL("libcuda.so.1")
function, ns = ctypes.c_void_p(spin), ctypes.c_uint64(3_000_000)
answers = [
    driver.cuFuncSetBlockShape(function, 32, 1, 1),
    driver.cuParamSetv(function, 0, ctypes.byref(ns), 8),
    driver.cuLaunchGrid(function, 1, 1),  # with no size of parameters
    driver.cuParamSetSize(function, 8),
    driver.cuLaunchGrid(function, 1, 1),
    driver.cuLaunchGridAsync(function, 1, 0, None),
    driver.cuParamSeti(function, 4095, 1),
    driver.cuFuncSetBlockShape(None, 32, 1, 1),
]
ok(cu.cuCtxSynchronize())
result(answers)
"""
    )
    assert simulated.python(script, SIMGPU_TAG="old").result() == [0, 0, 1, 0, 0, 1, 1, 400]
    assert simulated.process("old").executed_ns[0] == 3 * MS
