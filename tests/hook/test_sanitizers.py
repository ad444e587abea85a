"""The hook built with sanitizers, in front of real programs; what they find ends the program."""

import os
import subprocess
from pathlib import Path

import pytest

from simgpu.create import create
from simgpu.environment import variables
from tests.kit.hook.manager import MIB, PATIENCE_S, ScriptedManager
from tests.kit.hook.stage import LINK_DRIVER, SUCCESS, Stage, compile_program
from tests.kit.programs.compiled import SANITIZERS, sanitized_hook, sanitizer_runtime

PROGRAMS = {
    "manners": [
        "plain",
        "spawn",
        "fork_anywhen",
        "close_all",
        "full_table",
        "sandbox",
        "storm",
        "keep_errno",
        "leaving_threads",
        "cancelled_threads",
        "work_at_exit",
    ],
    "odd": [
        "threads",
        "leaving_threads",
        "streams",
        "events",
        "chains",
        "default_streams",
        "contexts",
        "graphs",
        "capture_beside_waits",
        "broken_capture",
        "signalling_host_functions",
        "wrong_arguments",
        "pools",
        "queries",
    ],
}
"""Of each program the things that are run: a sanitizer is slow."""
NOT_FOR = {"thread": ("fork_anywhen",)}
"""A child of a program with threads is more than that sanitizer can follow."""


@pytest.fixture(scope="module", params=SANITIZERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def preload(kind: str) -> dict[str, str]:
    """Variables that put the sanitizer and the hook, built with it, in front of a program."""
    runtime, library = sanitizer_runtime(kind), sanitized_hook(kind)
    return {
        "LD_PRELOAD": f"{runtime}{os.pathsep}{library}",
        # Leaks would be the program's: it ends with all that it has.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1",
        "TSAN_OPTIONS": "exitcode=66",
    }


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("programs")
    return {name: compile_program(folder / name, name, *LINK_DRIVER) for name in PROGRAMS}


@pytest.mark.misuses("*: no context", "*: in a forked child", "*: unknown *", "*: destroyed context")
@pytest.mark.parametrize("name", PROGRAMS)
def test_sanitizers_find_nothing_behind_programs(
    name: str, kind: str, preload: dict[str, str], binaries: dict[str, Path], stage: Stage, manager: ScriptedManager
) -> None:
    manager.serve(contended=True)
    found = {}
    for thing in PROGRAMS[name]:
        if thing in NOT_FOR.get(kind, ()):
            continue
        result = subprocess.run(
            [binaries[name], thing],
            env=stage.environment(**preload),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        if (result.returncode, result.stderr) != (0, ""):
            found[thing] = result
    assert found == {}
    assert manager.connections


def test_sanitizers_find_nothing_where_streams_run_beside_each_other(
    preload: dict[str, str], binaries: dict[str, Path], stage: Stage, manager: ScriptedManager, tmp_path: Path
) -> None:
    manager.serve(contended=True)
    create(tmp_path / "machine", gpus=1, memory_mib=4096, overlap=True)
    result = subprocess.run(
        [binaries["odd"], "neighbours"],
        env=stage.environment(**preload, **variables(tmp_path / "machine", {})),
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("failed: 0\n")


def test_sanitizers_find_nothing_behind_calls_of_all_kinds(
    preload: dict[str, str], stage: Stage, manager: ScriptedManager
) -> None:
    client = stage.client(**preload)
    manager.serve(contended=True)
    client.ready().start()
    for command in (
        "stream 1",
        "stream 1",
        "threads 4 100 100",
        "loop 100 100",
        "eventsync",
        "capture 1 0",
        "launch 100 2 1",
        "endcapture 1",
        "graph 0 1",
        "sync",
        f"alloc plain {MIB}",
        f"alloc pitch {MIB}",
        f"churn 4 {20 * MIB} 60",
        "set",
        "fetch",
        "free 0",
        "create",
        "launch 100 50",
        f"alloc plain {MIB}",
        "destroy",
        "endstream 1",
    ):
        if command == "destroy":
            client.tell("info")
            client.answer()
        assert client.do(command) == SUCCESS, command
    status, errors = client.end()
    assert (status, errors) == (0, "")
