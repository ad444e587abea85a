"""How the virtual machine's library is built."""

from pathlib import Path

FOLDER = Path(__file__).parent
GCC = ("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-g")
FLAGS = ("-fPIC", "-fno-builtin", "-shared", "-pthread", "-Wl,-soname,libvt.so", "-Wl,-z,defs")
PARTS = (FOLDER, *(FOLDER / part for part in ("descriptors", "processes", "threads")))
SOURCES = sorted((path for part in PARTS for path in part.glob("*.[cS]")), key=lambda path: path.name)
LIBRARY = (*GCC, *FLAGS, f"-I{FOLDER}", "-o", "libvt.so", *map(str, SOURCES))
"""Makes libvt.so in the folder that it is run in; fails on any processor but x86-64."""

LINK = ("-L.", "-lvt", "-Wl,-rpath,$ORIGIN")
"""For what is made beside it, and uses it."""
