"""What primary and green contexts take is on the books once, from before they are made until they have ended."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cuda_hook import wire
from tests.kit.hook.manager import MIB, WELCOME, ScriptedManager
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Client, Stage, compile_program

CONTEXT_MIB = 400
"""Of a context: two of them fit under the cap (1024 MiB), three do not."""
INVALID_CONTEXT = 201
INVALID_VALUE = 1


@pytest.fixture
def manager(stage: Stage) -> Iterator[ScriptedManager]:
    with ScriptedManager(stage.directory, WELCOME, context_bytes=CONTEXT_MIB * MIB) as manager:
        yield manager


@pytest.fixture
def program(stage: Stage) -> Iterator[Callable[..., Client]]:
    """Starts a program; it is ended with the test."""
    running: list[Client] = []

    def start(*argv: object, **environment: str) -> Client:
        running.append(Client([str(word) for word in argv], stage.environment(**environment)))
        return running[-1]

    yield start
    for client in running:
        client.kill()


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    """The folder of a driver that has contexts alone."""
    compile_program(tmp_path / "libcuda.so.1", "memory/contexts.c", "-shared", "-fPIC")
    return tmp_path


@contextmanager
def small_cap(stage: Stage) -> Iterator[ScriptedManager]:
    """One context fits, and no second one."""
    with ScriptedManager(stage.directory, WELCOME, context_bytes=600 * MIB) as manager:
        yield manager


def used_mib(manager: ScriptedManager, contexts_freed: int) -> int:
    """What the books say when so many contexts have been given back."""
    if contexts_freed:
        manager.hears(wire.Freed, contexts_freed)
    return manager.used_bytes // MIB


def test_of_two_threads_that_come_at_once_one_makes_the_context(
    stage: Stage, contexts: Path, program: Callable[..., Client]
) -> None:
    driver = (f"-L{contexts}", "-l:libcuda.so.1")
    makers = compile_program(contexts / "makers", "memory/makers.c", *driver)
    with small_cap(stage) as manager:
        client = program(makers, LD_LIBRARY_PATH=str(contexts))
        assert client.line() == f"retained {SUCCESS} {SUCCESS}, made 1"
        assert used_mib(manager, 0) == 600
        client.tell("")
        assert client.line() == f"released {SUCCESS} {SUCCESS}"
        assert used_mib(manager, 1) == 0


DRIVER = """
import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1")
things = []
def retain():
    context = ctypes.c_void_p()
    result = cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    return result or cu.cuCtxSetCurrent(context)
def release():
    return cu.cuDevicePrimaryCtxRelease_v2(0)
def reset():
    return cu.cuDevicePrimaryCtxReset_v2(0)
def active():
    flags, active = ctypes.c_uint(), ctypes.c_int()
    return cu.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) or active.value
def alloc(mib):
    memory = ctypes.c_uint64()
    return cu.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(mib << 20))
def green(resources):
    context, current = ctypes.c_void_p(), ctypes.c_void_p()
    result = cu.cuGreenCtxCreate(ctypes.byref(context), ctypes.c_void_p(resources), 0, 1)
    if result == 0:
        things.append(context)
        cu.cuCtxFromGreenCtx(ctypes.byref(current), context)
        cu.cuCtxSetCurrent(current)
    return result
def destroy(index):
    return cu.cuGreenCtxDestroy(things[index])
print("ready", flush=True)
cu.cuInit(0)
for line in sys.stdin:
    name, *numbers = line.split()
    print("=", globals()[name](*map(int, numbers)), flush=True)
"""


@pytest.mark.parametrize("hooked", [False, True], ids=["the driver alone", "with the hook"])
def test_a_reset_ends_a_context_and_leaves_who_retained_it(
    hooked: bool, stage: Stage, manager: ScriptedManager, program: Callable[..., Client]
) -> None:
    client = program(sys.executable, "-c", DRIVER, **({} if hooked else {"LD_PRELOAD": ""})).ready()

    def is_over(contexts_freed: int) -> bool:
        return client.do("active") == 0 and (not hooked or used_mib(manager, contexts_freed) == 0)

    assert [client.do("retain") for _ in range(2)] == [SUCCESS] * 2
    assert client.do("alloc 100") == SUCCESS
    assert client.do("reset") == SUCCESS
    assert is_over(1)
    assert client.do("retain") == SUCCESS
    assert [client.do("release") for _ in range(2)] == [SUCCESS] * 2
    # It is retained once more.
    assert [client.do("active"), client.do("alloc 100")] == [1, SUCCESS]
    assert not hooked or used_mib(manager, 0) == CONTEXT_MIB + 100
    assert client.do("release") == SUCCESS
    assert is_over(2)
    assert client.do("release") == INVALID_CONTEXT
    # Of one that ended by a reset, too, each is released.
    assert [client.do("retain"), client.do("reset"), client.do("release")] == [SUCCESS] * 3
    assert client.do("release") == INVALID_CONTEXT
    assert is_over(3)


def test_a_green_context_is_claimed_with_the_primary_one_that_it_makes(
    stage: Stage, manager: ScriptedManager, contexts: Path, program: Callable[..., Client]
) -> None:
    client = program(sys.executable, "-c", DRIVER, LD_LIBRARY_PATH=str(contexts)).ready()
    # The driver refuses: what was claimed is given back.
    assert client.do("green 0") == INVALID_VALUE
    assert used_mib(manager, 2) == 0
    assert client.do("green 1") == SUCCESS
    assert used_mib(manager, 0) == 2 * CONTEXT_MIB
    # A third context does not fit, and the driver is not asked for it.
    assert client.do("green 1") == OUT_OF_MEMORY
    assert used_mib(manager, 0) == 2 * CONTEXT_MIB
    assert client.do("destroy 0") == SUCCESS
    assert client.do("active") == 0
    assert used_mib(manager, 4) == 0


def test_where_the_primary_context_does_not_fit_either_nothing_is_claimed(
    stage: Stage, contexts: Path, program: Callable[..., Client]
) -> None:
    with small_cap(stage) as manager:
        client = program(sys.executable, "-c", DRIVER, LD_LIBRARY_PATH=str(contexts)).ready()
        assert client.do("green 1") == OUT_OF_MEMORY
        assert client.do("active") == 0
        # The primary one was claimed.
        assert used_mib(manager, 1) == 0


def test_what_is_allocated_in_a_green_context_is_the_primary_ones(
    stage: Stage, manager: ScriptedManager, contexts: Path, program: Callable[..., Client]
) -> None:
    client = program(sys.executable, "-c", DRIVER, LD_LIBRARY_PATH=str(contexts)).ready()
    assert client.do("retain") == SUCCESS
    assert client.do("green 1") == SUCCESS
    assert client.do("alloc 100") == SUCCESS
    assert client.do("destroy 0") == SUCCESS
    assert used_mib(manager, 1) == CONTEXT_MIB + 100
    assert client.do("release") == SUCCESS
    assert used_mib(manager, 2) == 0
