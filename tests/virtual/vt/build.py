"""Builds the virtual machine's library."""

from pathlib import Path

from bench.compiler import compile_program

FOLDER = Path(__file__).parent
FLAGS = ("-std=gnu11", "-g", "-fPIC", "-fno-builtin", "-shared", "-pthread", "-Wl,-soname,libvt.so", "-Wl,-z,defs")


def build(into: Path) -> Path:
    """Compiles libvt.so into a folder that is there; raises Unavailable where that fails, as on any processor but
    x86-64."""
    first, *others = sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.S")])
    built = compile_program(first, into, *FLAGS, *map(str, others))
    return built.rename(into / "libvt.so")
