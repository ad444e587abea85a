"""What a real driver need not survive is noted: by which call, and what was wrong with it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simgpu.readings import Misuses
from tests.kit.machine.simulated import Simulated

START = "cu.start()\n"
DEAD = {
    "stream": ("s = cu.stream(); cu.cuStreamDestroy_v2(s)", "cu.cuStreamQuery(s)", "cuStreamQuery"),
    "event": ("e = cu.event(); cu.cuEventDestroy_v2(e)", "cu.cuEventQuery(e)", "cuEventQuery"),
    "context": (
        "c = cu.out('cuCtxCreate_v2', ctypes.c_void_p, 0, 0); cu.cuCtxDestroy_v2(c)",
        "cu.cuCtxSynchronize_v2(c)",
        "cuCtxSynchronize_v2",
    ),
    "module": ("m = cu.module(); cu.cuModuleUnload(m)", "cu.cuModuleUnload(m)", "module_unload"),
    "function": (
        "m = cu.module(); f = cu.function(module=m); cu.cuModuleUnload(m)",
        "cu.launch(f, 1)",
        "launch_kernel",
    ),
    "graph": (
        "g = cu.out('cuGraphCreate', ctypes.c_void_p, 0); cu.cuGraphDestroy(g)",
        "cu.cuGraphDestroy(g)",
        "cuGraphDestroy",
    ),
    "graph exec": (
        "g = cu.out('cuGraphCreate', ctypes.c_void_p, 0)\n"
        "x = cu.out('cuGraphInstantiateWithFlags', ctypes.c_void_p, g, ctypes.c_uint64(0)); cu.cuGraphExecDestroy(x)",
        "cu.cuGraphLaunch(x, None)",
        "cuGraphLaunch",
    ),
}


@pytest.fixture
def noted(simulated: Simulated) -> Iterator[Callable[[str], list[str]]]:
    """Runs a script, and returns what was noted of it."""
    misuses = Misuses(simulated.directory)

    def run(script: str) -> list[str]:
        simulated.python(script + "\nresult(0)").result()
        return misuses.new()

    yield run
    misuses.close()


@pytest.mark.misuses("*: destroyed *")
@pytest.mark.parametrize("kind", DEAD)
def test_what_was_destroyed_is_told_from_what_lives(kind: str, noted: Callable[[str], list[str]]) -> None:
    make, use, call = DEAD[kind]
    assert noted(f"{START}{make}\n") == []
    # Many more of the kind are made meanwhile: its handle is none of theirs.
    assert noted(f"{START}{make}\nfor _ in range(5):\n    cu.stream(), cu.event(), cu.module()\n{use}") == [
        f"{call}: destroyed {kind}"
    ]


@pytest.mark.misuses("*: unknown *")
def test_what_was_never_made_is_unknown(noted: Callable[[str], list[str]]) -> None:
    words = "w = (ctypes.c_uint64 * 64)(7)\n"
    assert noted(f"{START}{words}cu.cuEventQuery(ctypes.byref(w))") == ["cuEventQuery: unknown event"]
    assert noted(f"{START}cu.cuMemRelease(ctypes.c_uint64(3))") == ["cuMemRelease: unknown memory handle"]
    assert noted(f"{START}a = cu.alloc(64)\nfor _ in range(2): cu.cuMemFree_v2(a)") == ["cuMemFree_v2: unknown address"]


@pytest.mark.misuses("*: no context")
def test_calls_that_need_a_context_need_one(noted: Callable[[str], list[str]]) -> None:
    leave = f"{START}e = cu.event(); s = cu.stream(); cu.cuEventRecord(e, s); cu.cuCtxSetCurrent(None)\n"
    assert noted(f"{leave}cu.cuEventQuery(e)") == []
    assert noted(f"{leave}cu.cuStreamQuery(s)") == ["cuStreamQuery: no context"]
    elapsed = "cu.cuEventElapsedTime(ctypes.byref(ctypes.c_float()), e, e)"
    assert noted(f"{leave}{elapsed}") == ["cuEventElapsedTime: no context"]


@pytest.mark.misuses("*: in a forked child")
def test_a_child_has_no_part_in_its_parents_driver(noted: Callable[[str], list[str]]) -> None:
    fork = "if os.fork() == 0:\n    cu.cuCtxSynchronize(); os._exit(0)\nos.wait()"
    assert noted(f"{START}{fork}") == ["cuCtxSynchronize: in a forked child"]


def test_a_misuse_that_is_being_noted_comes_once_and_whole(tmp_path: Path) -> None:
    misuses = Misuses(tmp_path)
    with (tmp_path / "misuses").open("a") as noted:
        for part, new in (
            ("cuEventQuery: dest", []),
            ("royed event\n", ["cuEventQuery: destroyed event"]),
            ("a\nb\n", ["a", "b"]),
        ):
            noted.write(part)
            noted.flush()
            assert misuses.new() == new
    misuses.close()
