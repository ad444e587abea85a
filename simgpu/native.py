"""The C side of a machine, for Python: the layout of its file and the few functions that work on it."""

from functools import cache
from pathlib import Path
from typing import Any

from cffi import FFI

PACKAGE = Path(__file__).parent
LIBRARIES = PACKAGE / "lib"
"""The folder for ``LD_LIBRARY_PATH``: ``libcuda.so.1`` and ``libnvidia-ml.so.1`` are in it."""
BURN = PACKAGE / "bin" / "burn"
"""A CUDA program that runs kernels of a given length."""
HEADERS = ("machine/plan.h", "machine/layout.h", "observer/observer.h")
"""Of the package: the layout, whose parts come before it, and the functions."""


@cache
def load() -> tuple[FFI, Any]:
    """The layout and the library, read once: that takes longer than to make a machine. Raises OSError where the C parts
    are not built."""
    ffi = FFI()
    for header in HEADERS:
        ffi.cdef((PACKAGE / header).read_text())
    return ffi, ffi.dlopen(str(LIBRARIES / "libsimgpu.so"))
