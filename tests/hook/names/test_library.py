"""The library as a file: what it exports and needs, what loading it costs, and its run under sanitizers."""

import os
import re
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from simgpu.native import LIBRARIES
from tests.kit.hook.manager import PATIENCE_S
from tests.kit.hook.portable import GLIBC_OLDEST, portable
from tests.kit.hook.stage import HOOK, ROOT, compile_program
from tests.kit.programs.compiled import HOOK_INCLUDES

MUSL_HAS_NOT = re.compile(r"dlvsym|_chk$|__libc_|gnu_|secure_getenv|_dl_")
"""Names that only glibc has: a library that needs one ends every process of a container with musl."""


def output(*command: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def symbols(library: Path, which: str) -> list[str]:
    """Names of a library's dynamic symbols, with their versions."""
    return [line.split()[-1] for line in output("nm", "-D", which, library).splitlines()]


def test_exactly_the_intended_symbols_are_exported(tmp_path: Path) -> None:
    exported = symbols(HOOK, "--defined-only")
    intended = output(compile_program(tmp_path / "names", "names/names.c")).split()
    assert sorted(exported) == sorted(intended)
    # What only orders must never be held up; a capture spreads by the one of them (submissions.c tries that).
    ordering = {name for name in exported if re.search(r"EventRecord|WaitEvent", name)}
    assert ordering == {"cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"}


def test_all_that_the_driver_submits_by_is_wrapped() -> None:
    """As far as the simulated driver goes: launches, copies and sets."""
    driver = symbols(LIBRARIES / "libcuda.so.1", "--defined-only")
    submits = {name for name in driver if re.match(r"cu(Launch(?!Host)|Memcpy|Memset|GraphLaunch)", name)}
    assert len(submits) > 40
    assert submits <= set(symbols(HOOK, "--defined-only"))


@pytest.fixture(params=["here", "x86_64", "aarch64"])
def library(request: pytest.FixtureRequest) -> Path:
    """The hook as `make build` has it, and as it is built for old C libraries."""
    return HOOK if request.param == "here" else portable(request.param) / "cuda_hook" / HOOK.name


def test_nothing_is_needed_that_an_old_or_another_c_library_has_not(library: Path) -> None:
    needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", library))
    assert needed == ["libc.so.6"]
    imported = symbols(library, "--undefined-only")
    assert imported
    for name in imported:
        plain, _, version = name.partition("@")
        assert not MUSL_HAS_NOT.search(plain), name
        # They live in libpthread and libdl on older systems.
        assert not plain.startswith(("pthread_", "dlopen", "dlsym")), name
        number = re.search(r"GLIBC_(\d+)\.(\d+)", version)
        assert number, name
        assert tuple(int(part) for part in number.groups()) <= GLIBC_OLDEST, name


ENDS_A_PROCESS = {"exit", "_exit", "_Exit", "abort", "__assert_fail", "raise", "kill", "__stack_chk_fail"}
ENDS_A_THREAD = {"open", "close", "read", "write", "poll", "connect", "send", "recvmsg", "fcntl", "nanosleep", "usleep"}
"""Where a thread can be cancelled (POSIX, 2.9.5.2): the hook's locks would stay taken."""


def test_nothing_is_called_that_ends_a_process_or_a_thread(library: Path) -> None:
    imported = {name.partition("@")[0] for name in symbols(library, "--undefined-only")}
    assert imported & (ENDS_A_PROCESS | ENDS_A_THREAD) == set()


def test_every_build_exports_the_same(library: Path) -> None:
    assert symbols(library, "--defined-only") == symbols(HOOK, "--defined-only")


def test_no_constructor_no_descriptor_of_text_and_hardly_a_relocation(library: Path) -> None:
    dynamic = output("readelf", "-dW", library)
    assert not re.findall(r"\((?:INIT|FINI|INIT_ARRAY|FINI_ARRAY|PREINIT_ARRAY|TEXTREL)\)", dynamic)
    # Closed by the program that opened it, it stays: its thread is within it.
    assert "NODELETE" in dynamic
    # All that a function calls is found at its first call, not when the library is loaded.
    assert "NOW" not in dynamic
    relocations = output("readelf", "-rW", library).splitlines()
    at_once = [
        line for line in relocations if re.search(r"R_\w+_(RELATIVE|64|ABS64|GLOB_DAT|TPOFF64|TLS_TPREL\w*) ", line)
    ]
    assert 0 < len(at_once) < 20
    assert len(re.findall(r"^ +LOAD", output("readelf", "-lW", library), re.MULTILINE)) <= 4


def test_loading_it_costs_no_more_than_an_empty_library(tmp_path: Path) -> None:
    """In pages, which is what loading is made of; the time is printed, as the machine is shared."""
    (tmp_path / "empty.c").write_text("")
    empty = tmp_path / "empty.so"
    output("gcc", "-shared", "-fPIC", "-o", empty, tmp_path / "empty.c")
    times: dict[str, list[float]] = {"": [], str(empty): [], str(HOOK): []}
    faults: dict[str, list[int]] = {preload: [] for preload in times}
    for _ in range(100):
        for preload, took in times.items():
            before = time.perf_counter()
            program = os.posix_spawn("/bin/true", ["/bin/true"], {"LD_PRELOAD": preload})
            _, status, usage = os.wait4(program, 0)
            took.append(time.perf_counter() - before)
            faults[preload].append(usage.ru_minflt)
            assert status == 0
    bare, with_empty, with_hook = (statistics.median(took) * 1e6 for took in times.values())
    print(f"/bin/true: {bare:.0f} µs, empty library {with_empty - bare:+.0f}, hook {with_hook - bare:+.0f}")
    assert statistics.median(faults[str(HOOK)]) <= statistics.median(faults[str(empty)])


def test_the_pure_parts_hold_under_sanitizers(tmp_path: Path) -> None:
    parts = sorted((ROOT / "cuda_hook" / "core").rglob("*.c"))
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", *map(str, parts))
    program = compile_program(tmp_path / "core_test", "core", *flags)
    result = subprocess.run([program], check=False, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_thread_that_submits_alone_keeps_nobody_out_for_good(tmp_path: Path) -> None:
    parts = [*sorted((ROOT / "cuda_hook" / "core").rglob("*.c")), ROOT / "cuda_hook/src/pass/grant.c"]
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", *HOOK_INCLUDES, *map(str, parts))
    program = compile_program(tmp_path / "pauses", "pauses.c", *flags)
    result = subprocess.run([program], check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
