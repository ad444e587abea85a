"""The hook with every atomic operation a point: built for the thread sanitizer, whose functions the virtual machine
answers."""

from pathlib import Path

from tests.kit.programs.compiled import HOOK_INCLUDES, HOOK_SOURCES, compiled

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-fvisibility=hidden", *HOOK_INCLUDES)
LINK = ("-nostartfiles", "-Wl,-soname,libedgeshare_cuda.so", "-Wl,-z,nodelete", "-Wl,-z,lazy")


def build_instrumented() -> Path:
    """Compiles the hook's sources. Raises CalledProcessError."""
    plain = [source for source in HOOK_SOURCES if source.suffix == ".c"]
    assembly = [source for source in HOOK_SOURCES if source.suffix == ".S"]
    objects = [*(f"{source.stem}.o" for source in plain), *(f"{source.name}.o" for source in assembly)]
    library = "libedgeshare_cuda.so"
    return compiled(
        library,
        ["gcc", *FLAGS, "-fsanitize=thread", "-c", *map(str, plain)],
        *(["gcc", *FLAGS, "-c", str(source), "-o", f"{source.name}.o"] for source in assembly),
        # Without the flag: the sanitizer's own library is not to be there.
        ["gcc", "-shared", "-o", library, *LINK, *objects],
    )
