"""Variables of machine code, which is an ELF file: a program finds those that the file names."""

from tests.kit.machine.simulated import Simulated

SCRIPT = """
import ctypes, struct
cuda = ctypes.CDLL("libcuda.so.1")

def cubin(*symbols):
    names, table = b"\\0", struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name, info, section, size in symbols:
        table += struct.pack("<IBBHQQ", len(names), info, 0, section, 0, size)
        names += name + b"\\0"
    at = 64 + 3 * 64
    header = b"\\x7fELF\\x02\\x01\\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64, 0, 64, 56, 0, 64, 3, 0)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at, len(table), 2, 0, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at + len(table), len(names), 0, 0, 1, 0)
    return header + sections + table + names

VARIABLE, KERNEL, LOCAL = 0x11, 0x12, 0x01
image = cubin((b"weights", VARIABLE, 1, 4096), (b"step", KERNEL, 1, 128), (b"hidden", LOCAL, 1, 8),
              (b"elsewhere", VARIABLE, 0, 8), (b"n" * 5000, VARIABLE, 1, 8))
device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
cuda.cuCtxSetCurrent(context)
loaded = cuda.cuModuleLoadData(ctypes.byref(module), image)

def find(name):
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    answer = cuda.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, name)
    return [answer, bool(address.value), size.value]

first, again = ctypes.c_uint64(), ctypes.c_uint64()
cuda.cuModuleGetGlobal_v2(ctypes.byref(first), None, module, b"weights")
cuda.cuModuleGetGlobal_v2(ctypes.byref(again), None, module, b"weights")
written = cuda.cuMemsetD8_v2(first, 7, 4096)
result([loaded, find(b"weights"), first.value == again.value, written,
        [find(name)[0] for name in (b"step", b"hidden", b"elsewhere", b"n" * 5000, b"nothing")],
        cuda.cuModuleUnload(module)])
"""
NOT_FOUND = 500


def test_a_variable_of_a_cubin_is_found_with_its_size(simulated: Simulated) -> None:
    loaded, weights, same, written, others, unloaded = simulated.python(SCRIPT).result()
    assert (loaded, weights, same, written, unloaded) == (0, [0, True, 4096], True, 0, 0)
    assert others == [NOT_FOUND] * 5
