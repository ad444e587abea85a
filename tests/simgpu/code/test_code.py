"""What modules take of a GPU's memory."""

from collections.abc import Callable

import pytest

from tests.kit.machine.simulated import Simulated

TYPES = """
MIB = 1 << 20
big = SPIN.replace(b"ret; }", b"ret; // " + b"x" * (4 * MIB) + b"\\n}", 1)
cu.start()
free = cu.memory()[0]
def taken():
    return round((free - cu.memory()[0]) / MIB)
"""


@pytest.mark.parametrize(
    ("cuda", "chosen", "seen"),
    [
        ("12.4", "", [0, 0, 4, 4]),
        ("12.4", "EAGER", [4, 4, 4, 4]),
        ("11.4", "", [4, 4, 4, 4]),
        ("11.8", "LAZY", [0, 0, 4, 4]),
    ],
)
def test_an_image_is_in_memory_from_its_loading_or_its_first_launch(
    simulate: Callable[..., Simulated], cuda: str, chosen: str, seen: list[int]
) -> None:
    simulated = simulate(gpus=1, memory_mib=1024, cuda_version=cuda)
    script = """
module = cu.module(big)
seen = [taken()]
function = cu.function(b"spin", module)
seen.append(taken())
for _ in range(2):
    cu.launch(function, 1000)
    seen.append(taken())
cu.ok("cuCtxSynchronize")
cu.ok("cuModuleUnload", module)
result([seen, taken(), cu.out("cuModuleGetLoadingMode", ctypes.c_int).value])
"""
    mode = 2 if seen[0] == 0 else 1
    variables = {"CUDA_MODULE_LOADING": chosen} if chosen else {}
    assert simulated.python(TYPES + script, **variables).result() == [seen, 0, mode]


def test_a_library_is_loaded_in_each_context_that_runs_it(simulated: Simulated) -> None:
    script = """
library = cu.out("cuLibraryLoadData", ctypes.c_void_p, big, None, None, 0, None, None, 0)
kernel = cu.out("cuLibraryGetKernel", ctypes.c_void_p, library, b"spin")
seen = [taken()]
cu.launch(kernel, 1000)
seen.append(taken())
second = cu.out("cuCtxCreate_v2", ctypes.c_void_p, 0, 0)
function = cu.out("cuKernelGetFunction", ctypes.c_void_p, kernel)
states = [cu.out("cuFuncIsLoaded", ctypes.c_int, function).value]
cu.ok("cuFuncLoad", function)
states.append(cu.out("cuFuncIsLoaded", ctypes.c_int, function).value)
seen.append(taken() - 256)
cu.ok("cuCtxDestroy_v2", second)
seen.append(taken())
cu.ok("cuLibraryUnload", library)
seen.append(taken())
result([seen, states])
"""
    assert simulated.python(TYPES + script).result() == [[0, 4, 8, 4, 0], [0, 1]]


def test_a_launch_fails_where_its_image_has_no_room(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, memory_mib=256 + 8)
    script = """
function = cu.function(b"spin", cu.module(big))
pointer = cu.alloc(6 * MIB)
full = cu.launch(function, 1000)
cu.ok("cuMemFree_v2", pointer)
again = cu.launch(function, 1000)
cu.ok("cuCtxSynchronize")
result([full, again])
"""
    assert simulated.python(TYPES + script).result() == [2, 0]
