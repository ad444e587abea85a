"""Arrays: memory whose layout is the driver's own affair."""

import pytest

from tests.kit.machine.simulated import Simulated

TYPES = """
class Plane(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("format", ctypes.c_int),
                ("channels", ctypes.c_uint)]
class Box(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t),
                ("format", ctypes.c_int), ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)]
class Copy(ctypes.Structure):  # CUDA_MEMCPY3D
    _fields_ = [("src_x", ctypes.c_size_t), ("src_y", ctypes.c_size_t), ("src_z", ctypes.c_size_t),
                ("src_lod", ctypes.c_size_t), ("src_type", ctypes.c_int), ("src_host", ctypes.c_void_p),
                ("src_device", ctypes.c_uint64), ("src_array", ctypes.c_void_p), ("r0", ctypes.c_void_p),
                ("src_pitch", ctypes.c_size_t), ("src_height", ctypes.c_size_t),
                ("dst_x", ctypes.c_size_t), ("dst_y", ctypes.c_size_t), ("dst_z", ctypes.c_size_t),
                ("dst_lod", ctypes.c_size_t), ("dst_type", ctypes.c_int), ("dst_host", ctypes.c_void_p),
                ("dst_device", ctypes.c_uint64), ("dst_array", ctypes.c_void_p), ("r1", ctypes.c_void_p),
                ("dst_pitch", ctypes.c_size_t), ("dst_height", ctypes.c_size_t),
                ("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]
U8, FLOAT, HOST, ARRAY = 1, 0x20, 1, 3
def taken(call):
    before = cu.memory()[0]
    value = call()
    return value, before - cu.memory()[0]
cu.start()
"""


@pytest.mark.misuses("check: destroyed array")
def test_arrays_take_memory_and_give_it_back(simulated: Simulated) -> None:
    script = """
plane, bytes_2d = taken(lambda: cu.out("cuArrayCreate_v2", ctypes.c_void_p,
                                       ctypes.byref(Plane(1024, 1024, FLOAT, 4))))
box, bytes_3d = taken(lambda: cu.out("cuArray3DCreate_v2", ctypes.c_void_p,
                                     ctypes.byref(Box(128, 128, 64, FLOAT, 1, 0))))
mipmap, bytes_mip = taken(lambda: cu.out("cuMipmappedArrayCreate", ctypes.c_void_p,
                                         ctypes.byref(Box(512, 512, 0, U8, 4, 0)), 3))
later, none = taken(lambda: cu.out("cuArray3DCreate_v2", ctypes.c_void_p,
                                   ctypes.byref(Box(512, 512, 0, U8, 4, 0x80))))
full = cu.cuArray3DCreate_v2(ctypes.byref(ctypes.c_void_p()), ctypes.byref(Box(1024, 1024, 1024, FLOAT, 4, 0)))
describe = Box()
cu.ok("cuArray3DGetDescriptor_v2", ctypes.byref(describe), box)
level = cu.out("cuMipmappedArrayGetLevel", ctypes.c_void_p, mipmap, 2)
small = Plane()
cu.ok("cuArrayGetDescriptor_v2", ctypes.byref(small), level)
no_level = cu.cuMipmappedArrayGetLevel(ctypes.byref(ctypes.c_void_p()), mipmap, 3)
needs = (ctypes.c_size_t * 4)()
cu.ok("cuArrayGetMemoryRequirements", needs, later, 0)
refused = [cu.cuArrayGetMemoryRequirements(needs, plane, 0), cu.cuArrayDestroy(level),
           cu.cuArrayCreate_v2(ctypes.byref(ctypes.c_void_p()), ctypes.byref(Plane(10, 10, U8, 3)))]
for each in (plane, box, later):
    cu.ok("cuArrayDestroy", each)
cu.ok("cuMipmappedArrayDestroy", mipmap)
again = cu.cuArrayDestroy(plane)
second = cu.out("cuCtxCreate_v2", ctypes.c_void_p, 0, 0)
cu.out("cuArrayCreate_v2", ctypes.c_void_p, ctypes.byref(Plane(1024, 1024, FLOAT, 4)))
cu.ok("cuCtxDestroy_v2", second)
result([bytes_2d, bytes_3d, bytes_mip, none, full, [describe.width, describe.height, describe.depth],
        [small.width, small.height], no_level, needs[0], refused, again, cu.memory()[1] - cu.memory()[0]])
"""
    mib = 1 << 20
    levels = 512 * 512 * 4 + 256 * 256 * 4 + 128 * 128 * 4
    assert simulated.python(TYPES + script).result() == [
        16 * mib,
        4 * mib,
        levels,
        0,
        2,
        [128, 128, 64],
        [128, 128],
        1,
        mib,
        [1, 400, 1],
        400,
        256 * mib,
    ]


@pytest.mark.misuses("check: unknown array")
def test_what_is_copied_into_an_array_can_be_copied_out(simulated: Simulated) -> None:
    script = """
plane = cu.out("cuArrayCreate_v2", ctypes.c_void_p, ctypes.byref(Plane(8, 4, U8, 1)))
text = ctypes.create_string_buffer(b"abcdefghijklmnopqrstuvwxyz012345", 32)
back = ctypes.create_string_buffer(32)
cu.ok("cuMemcpy3D_v2", ctypes.byref(Copy(src_type=HOST, src_host=ctypes.addressof(text), dst_type=ARRAY,
                                         dst_array=plane, width=8, height=4, depth=1)))
cu.ok("cuMemcpy3D_v2", ctypes.byref(Copy(src_type=ARRAY, src_array=plane, src_x=2, src_y=1, dst_type=HOST,
                                         dst_host=ctypes.addressof(back), width=4, height=2, depth=1)))
part = back.raw[:8].decode()
line = cu.out("cuArrayCreate_v2", ctypes.c_void_p, ctypes.byref(Plane(16, 0, U8, 1)))
pointer = cu.alloc(64)
size = ctypes.c_size_t
cu.ok("cuMemcpyHtoA_v2", line, size(0), text, size(16))
cu.ok("cuMemcpyAtoD_v2", pointer, line, size(4), size(8))
cu.ok("cuMemcpyDtoA_v2", line, size(0), pointer, size(8))
cu.ok("cuMemcpyAtoA_v2", line, size(12), line, size(0), size(4))
cu.ok("cuMemcpyAtoHAsync_v2", back, line, size(0), size(16), None)
cu.ok("cuMemcpyHtoAAsync_v2", line, size(0), text, size(4), None)
cu.ok("cuCtxSynchronize")
outside = [cu.cuMemcpyHtoA_v2(line, size(10), text, size(8)), cu.cuMemcpyHtoA_v2(None, size(0), text, size(1)),
           cu.cuMemcpy3D_v2(ctypes.byref(Copy(src_type=HOST, src_host=ctypes.addressof(text), dst_type=ARRAY,
                                              dst_array=plane, dst_y=3, width=8, height=2, depth=1)))]
result([part, back.raw[:16].decode(), outside])
"""
    assert simulated.python(TYPES + script).result() == ["klmnstuv", "efghijklijklefgh", [1, 400, 1]]
    kinds = [each.kind for each in simulated.log()]
    assert kinds == ["copy"] * 8


@pytest.mark.misuses(
    "check: unknown array",
    "get_array: unknown reference",
    "set_array: destroyed reference",
    "set_array: unknown reference",
)
def test_texture_and_surface_references_hold_the_array_that_they_were_given(simulated: Simulated) -> None:
    script = """
plane = cu.out("cuArrayCreate_v2", ctypes.c_void_p, ctypes.byref(Plane(64, 64, FLOAT, 1)))
reference = cu.out("cuTexRefCreate", ctypes.c_void_p)
answers = []
for kind in ("Tex", "Surf"):
    give, take = getattr(cu, f"cu{kind}RefSetArray"), getattr(cu, f"cu{kind}RefGetArray")
    held = ctypes.c_void_p()
    answers.append([take(ctypes.byref(held), reference) if kind == "Tex" else 1, give(reference, None, 0),
                    give(reference, plane, 0), take(None, reference), take(ctypes.byref(held), reference),
                    held.value == plane.value, give(None, plane, 0), take(ctypes.byref(held), None)])
cu.ok("cuTexRefDestroy", reference)
result([answers, cu.cuTexRefSetArray(reference, plane, 0)])
"""
    of_each = [1, 400, 0, 1, 0, True, 400, 400]
    assert simulated.python(TYPES + script).result() == [[of_each, of_each], 400]
