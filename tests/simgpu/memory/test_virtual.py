"""Address ranges, and physical memory mapped into them."""

from collections.abc import Callable

import pytest

from tests.kit.machine.simulated import MIB, Simulated

TYPES = """
class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]
class Prop(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location),
                ("win32", ctypes.c_void_p), ("flags", ctypes.c_uint64)]
class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]
MIB, size, u64 = 1 << 20, ctypes.c_size_t, ctypes.c_uint64
def prop(device=0, handles=0, kind=1):
    return ctypes.byref(Prop(1, handles, Location(kind, device)))
def create(mib, **what):
    return cu.out("cuMemCreate", u64, size(mib * MIB), prop(**what), u64(0))
def reserve(mib):
    return cu.out("cuMemAddressReserve", u64, size(mib * MIB), size(0), u64(0), u64(0)).value
def map_at(address, mib, handle):
    return cu.cuMemMap(u64(address), size(mib * MIB), size(0), handle, u64(0))
def allow(address, mib, flags=3, device=0):
    return cu.cuMemSetAccess(u64(address), size(mib * MIB), ctypes.byref(Access(Location(1, device), flags)), size(1))
def unmap(address, mib):
    return cu.cuMemUnmap(u64(address), size(mib * MIB))
"""


def test_physical_memory_needs_no_context_and_is_seen(simulated: Simulated) -> None:
    script = """
cu.ok("cuInit", 0)
handle = create(100)
create(50, device=1)
create(70, kind=2)
print("holds", flush=True)
time.sleep(60)
"""
    program = simulated.python(TYPES + script, SIMGPU_TAG="holder")
    assert program.line() == "holds"
    assert simulated.process("holder").memory_bytes == (100 * MIB, 50 * MIB)
    assert [gpu.used_bytes for gpu in simulated.machine.gpus()] == [100 * MIB, 50 * MIB]
    program.kill()
    simulated.until(lambda: [gpu.used_bytes for gpu in simulated.machine.gpus()] == [0, 0])


@pytest.mark.misuses("cuMemMap: unknown memory handle", "cuMemRelease: unknown memory handle")
def test_physical_memory_ends_with_its_last_handle_and_mapping(simulated: Simulated) -> None:
    script = """
cu.start()
free = cu.memory()[0]
def taken():
    return (free - cu.memory()[0]) // MIB
handle = create(4)
base = reserve(1 << 20)
seen = [taken()]
codes = [map_at(base, 4, handle), map_at(base + 2 * MIB, 4, handle)]
cu.ok("cuMemRelease", handle)
seen.append(taken())
codes.append(map_at(base + 8 * MIB, 4, handle))
codes.append(cu.cuMemRelease(handle))
again = cu.out("cuMemRetainAllocationHandle", u64, ctypes.c_void_p(base + 3))
codes.append(unmap(base, 2))
cu.ok("cuMemUnmap", u64(base), size(4 * MIB))
seen.append(taken())
cu.ok("cuMemRelease", again)
seen.append(taken())
codes += [cu.cuMemAddressFree(u64(base), size(MIB)), cu.cuMemAddressFree(u64(base), size(1 << 40)),
          cu.cuMemAddressFree(u64(base), size(1 << 40))]
result([seen, codes, again.value == handle.value])
"""
    assert simulated.python(TYPES + script).result() == [[4, 4, 4, 0], [0, 1, 1, 1, 1, 1, 0, 1], True]


def test_mappings_side_by_side_are_one_range(simulated: Simulated) -> None:
    script = """
cu.start()
base = reserve(8)
first, second = create(2), create(2)
cu.ok("cuMemMap", u64(base), size(2 * MIB), size(0), first, u64(0))
cu.ok("cuMemMap", u64(base + 2 * MIB), size(2 * MIB), size(0), second, u64(0))
edge, text, back = u64(base + 2 * MIB - 4), b"12345678", ctypes.create_string_buffer(8)
before = cu.cuMemcpyHtoD_v2(edge, text, size(8))
cu.ok("cuMemSetAccess", u64(base), size(4 * MIB), ctypes.byref(Access(Location(1, 0), 3)), size(1))
cu.ok("cuMemcpyHtoD_v2", edge, text, size(8))
cu.ok("cuMemcpyDtoH_v2", back, edge, size(8))
flags = cu.out("cuMemGetAccess", u64, ctypes.byref(Location(1, 0)), u64(base)).value
other = cu.out("cuMemGetAccess", u64, ctypes.byref(Location(1, 1)), u64(base)).value
# The same memory at two places.
cu.ok("cuMemMap", u64(base + 4 * MIB), size(2 * MIB), size(0), second, u64(0))
cu.ok("cuMemSetAccess", u64(base + 4 * MIB), size(2 * MIB), ctypes.byref(Access(Location(1, 0), 3)), size(1))
alias = ctypes.create_string_buffer(4)
cu.ok("cuMemcpyDtoH_v2", alias, u64(base + 4 * MIB), size(4))
off = allow(base, 2, flags=0)
result([before, back.raw.decode(), flags, other, alias.raw.decode(), off, cu.cuMemcpyHtoD_v2(u64(base), text, size(8)),
        cu.cuMemcpyHtoD_v2(u64(base + 6 * MIB - 4), text, size(8)), cu.cuMemFree_v2(u64(base))])
"""
    assert simulated.python(TYPES + script).result() == [1, "12345678", 3, 0, "5678", 0, 1, 1, 1]


@pytest.mark.misuses("cuMemMap: unknown memory handle", "cuMemRelease: unknown memory handle")
def test_what_cannot_be_is_refused(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, memory_mib=512)
    script = """
cu.ok("cuInit", 0)
place = u64()
def code(bytes_wanted, what, flags=0):
    return cu.cuMemCreate(ctypes.byref(place), size(bytes_wanted), what, u64(flags))
grain = cu.out("cuMemGetAllocationGranularity", size, prop(), 1).value
base = reserve(4)
handle = create(2)
kept = cu.out("cuMemGetAllocationPropertiesFromHandle", Prop, handle)
result([grain, code(512 * MIB, prop()), code(510 * MIB, prop()), code(MIB, prop()), code(2 * MIB, prop(device=1)),
        code(2 * MIB, prop(handles=8)), code(2 * MIB, prop(kind=0)), code(2 * MIB, prop(), 1),
        cu.cuMemCreate(None, size(2 * MIB), prop(), u64(0)), map_at(base + MIB, 2, handle), map_at(base, 4, handle),
        map_at(base, 2, u64(0)), map_at(base, 2, u64(12345)), cu.cuMemRelease(u64(0)), allow(base, 2),
        kept.location.type, cu.cuMemAddressReserve(ctypes.byref(place), size(100), size(0), u64(0), u64(0))])
"""
    expected = [2 * MIB, 2, 0, 1, 101, 801, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert simulated.python(TYPES + script).result() == expected


def test_exported_memory_is_shared_and_outlives_its_exporter(simulated: Simulated) -> None:
    """The exporter hands a descriptor over a socket, and ends; the memory counts for the importer from then on."""
    path = str(simulated.directory / "socket")
    exporter = simulated.python(
        TYPES
        + f"""
cu.start()
handle = create(6, handles=1)
plain = create(2)
fd = ctypes.c_int()
refused = cu.cuMemExportToShareableHandle(ctypes.byref(fd), plain, 1, u64(0))
cu.ok("cuMemExportToShareableHandle", ctypes.byref(fd), handle, 1, u64(0))
base = reserve(6)
map_at(base, 6, handle), allow(base, 6)
cu.ok("cuMemcpyHtoD_v2", u64(base + 5 * MIB), b"hello", size(5))
own = cu.out("cuMemImportFromShareableHandle", u64, ctypes.c_void_p(fd.value), 1).value == handle.value
print(refused, own, flush=True)
give({path!r}, fd.value)
time.sleep(60)
""",
        SIMGPU_TAG="exporter",
    )
    assert exporter.line() == "1 True"
    assert exporter.line() == "ready"
    importer = simulated.python(
        TYPES
        + f"""
cu.start()
fd = take({path!r})
handle = cu.out("cuMemImportFromShareableHandle", u64, ctypes.c_void_p(fd), 1)
os.close(fd)
base = reserve(6)
back = ctypes.create_string_buffer(5)
def look():
    cu.ok("cuMemMap", u64(base), size(6 * MIB), size(0), handle, u64(0))
    allow(base, 6)
    cu.ok("cuMemcpyDtoH_v2", back, u64(base + 5 * MIB), size(5))
    return back.raw.decode()
print(look(), flush=True)
time.sleep(60)
""",
        SIMGPU_TAG="importer",
    )
    assert importer.line() == "hello"
    # Counted once, for the one that made it.
    assert simulated.process("exporter").memory_bytes[0] == (256 + 8) * MIB
    assert simulated.process("importer").memory_bytes[0] == 256 * MIB
    exporter.kill()
    simulated.until(lambda: simulated.machine.gpus()[0].used_bytes == (256 + 6) * MIB)
    assert simulated.process("importer").memory_bytes[0] == (256 + 6) * MIB
    importer.kill()
    simulated.until(lambda: simulated.machine.gpus()[0].used_bytes == 0)
