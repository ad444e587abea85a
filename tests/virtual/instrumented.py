"""The hook with every atomic operation a point: built for the thread sanitizer, whose functions the virtual machine
answers."""

import subprocess
from pathlib import Path

from world import ROOT

HOOK = ROOT / "cuda_hook"
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-fvisibility=hidden", f"-I{HOOK}")
LINK = ("-nostartfiles", "-Wl,-soname,libedgeshare_cuda.so", "-Wl,-z,nodelete", "-Wl,-z,lazy")


def build_instrumented(folder: Path) -> Path:
    """Compiles the hook's sources into a folder. Raises CalledProcessError."""
    sources = sorted([*HOOK.glob("src/*.c"), *HOOK.glob("core/*.c")])
    subprocess.run(["gcc", *FLAGS, "-fsanitize=thread", "-c", *sources], check=True, cwd=folder)
    for source in HOOK.glob("src/*.S"):
        subprocess.run(["gcc", *FLAGS, "-c", source, "-o", f"{source.name}.o"], check=True, cwd=folder)
    library = folder / "libedgeshare_cuda.so"
    # Without the flag: the sanitizer's own library is not to be there.
    subprocess.run(["gcc", "-shared", "-o", library, *LINK, *folder.glob("*.o")], check=True)
    return library
