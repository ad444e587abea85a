"""Real programs: what they print and how they end is the same with the hook; their work is gated, their memory capped.

Those that are not installed are skipped with the reason: ``pip install edgeshare[clients]`` has them.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuda_hook import wire
from tests.kit.hook.manager import PATIENCE_S, ScriptedManager
from tests.kit.hook.releases import NotHereError, release
from tests.kit.hook.stage import LINK_DRIVER, OUT_OF_MEMORY, ROOT, SOURCES, Stage
from tests.kit.manager.busy import assert_ranked, executed_until
from tests.kit.manager.testbed import EDGESHARE, Testbed
from tests.kit.programs.compiled import FLAGS

CAP_MIB = 1024
CONTEXT_MIB = 256
"""What a bare context takes on the simulated machine."""

LEAST_MS = 500
"""Who executes the least has executed so much when the order is judged."""

CLIENTS = SOURCES / "clients"
SPIN = ROOT / "tests/kit/gpu/workloads/spin.ptx"


@dataclass(frozen=True)
class Program:
    """A client. ``needs`` is the Python module without which it does not run; empty: it is compiled."""

    name: str
    needs: str = ""
    variables: tuple[tuple[str, str], ...] = ()

    def argv(self, built: Path, *arguments: str) -> list[str]:
        if not self.needs:
            return [str(built / self.name), *arguments]
        if not installed(self.needs):
            pytest.skip(f"{self.needs} is not installed")
        return [sys.executable, str(CLIENTS / f"{self.name}.py"), str(SPIN), *arguments]


def installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


LINKED, OPENED, STATICS = Program("linked"), Program("opened"), Program("statics")
BINDINGS = Program("bindings", "cuda.bindings.driver")
BUSY = Program("bindings_busy", "cuda.bindings.driver")
NVML = Program("nvml", "cuda.bindings.driver")
PROGRAMS = [
    (LINKED, ("work",)),
    (OPENED, ("work",)),
    (STATICS, ()),
    (Program("core", "cuda.core"), ()),
    (Program("numba_saxpy", "numba_cuda"), ()),
    (Program("tinygrad_sum", "tinygrad", (("DEV", "CUDA"),)), ()),
]
each_program = pytest.mark.parametrize(
    ("program", "arguments"), PROGRAMS, ids=[program.name for program, _ in PROGRAMS]
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled programs, made with NVIDIA's own header."""
    try:
        include = release("12.9")
    except NotHereError as error:
        pytest.skip(f"NVIDIA's header is not here: {error}")
    folder = tmp_path_factory.mktemp("real")
    common = [f"-I{include}", f"-I{ROOT / 'simgpu'}"]
    for target, command in {
        "linked": ["gcc", *FLAGS, *common, str(SOURCES / "plain.c"), *LINK_DRIVER],
        "opened": ["gcc", *FLAGS, *common, "-DOPENED", str(SOURCES / "plain.c"), "-ldl"],
        "statics": [
            "g++",
            "-std=c++17",
            "-O1",
            "-Wall",
            "-Wextra",
            *common,
            str(SOURCES / "statics.cpp"),
            *LINK_DRIVER,
        ],
    }.items():
        subprocess.run([*command, "-o", str(folder / target)], check=True)
    return folder


class Node:
    """A machine with a manager, and programs that run on it to their end."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed

    def bare(self, argv: list[str], program: Program) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            argv,
            env={**self.testbed.environment, **dict(program.variables)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def hooked(self, argv: list[str], program: Program) -> "subprocess.CompletedProcess[str]":
        """The same as a client with half a GPU and the cap."""
        options = self.testbed.run_arguments("--percent", "50", "--memory-mib", str(CAP_MIB))
        return self.bare([EDGESHARE, *options, "--", *argv], program)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    root = Path(tempfile.mkdtemp(prefix="es-real-", dir="/dev/shm"))
    testbed = Testbed(root)
    testbed.manager()
    yield Node(testbed)
    testbed.close()
    shutil.rmtree(root)


@pytest.mark.misuses("cuMemFree_v2: unknown address")
@each_program
def test_it_prints_and_ends_as_without_the_hook(
    program: Program, arguments: tuple[str, ...], built: Path, node: Node
) -> None:
    argv = program.argv(built, *arguments)
    bare, hooked = node.bare(argv, program), node.hooked(argv, program)
    assert bare.stdout, bare.stderr
    assert (hooked.stdout, hooked.returncode) == (bare.stdout, bare.returncode), hooked.stderr
    assert bare.returncode == {"linked": 7, "opened": 7, "statics": 5}.get(program.name, 0), bare.stderr


@pytest.mark.misuses("cuMemFree_v2: unknown address")
@each_program
def test_it_executes_nothing_before_a_grant(
    program: Program, arguments: tuple[str, ...], built: Path, stage: Stage, manager: ScriptedManager
) -> None:
    process = subprocess.Popen(
        program.argv(built, *arguments),
        env=stage.environment(**dict(program.variables)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        manager.hears(wire.Request)
        assert stage.executed() == []
        manager.serve(contended=True)
        manager.grant()
        process.communicate(timeout=PATIENCE_S)
    assert "kernel" in {interval.kind for interval in stage.executed()}


def test_nvidias_bindings_see_nothing_of_the_hook_but_the_cap(built: Path, node: Node) -> None:
    argv = BINDINGS.argv(built)
    bare, hooked = (run(argv, BINDINGS) for run in (node.bare, node.hooked))
    assert (bare.returncode, hooked.returncode) == (0, 0), bare.stderr + hooked.stderr
    without, answers = json.loads(bare.stdout), json.loads(hooked.stdout)
    total_mib = without.pop("memory")[-1]
    refusal, taken_mib, free_mib, *totals_mib = answers.pop("memory")
    assert (refusal, totals_mib) == ("CUDA_ERROR_OUT_OF_MEMORY", [CAP_MIB, CAP_MIB])
    # A kernel's image takes some too: the last piece, of 64 MiB, may not fit.
    assert free_mib < 64
    assert CAP_MIB - CONTEXT_MIB - 64 <= taken_mib <= CAP_MIB
    assert total_mib > CAP_MIB
    assert answers == without
    assert answers["streams"] == ["CUDA_SUCCESS"] * 8
    assert answers["events"] == ["CUDA_ERROR_NOT_READY", "CUDA_SUCCESS", True]
    assert answers["graphs"] == [11, True]
    assert answers["pools"] == [0]
    assert answers["virtual_memory"] == [True, "CUDA_ERROR_OUT_OF_MEMORY"]


@pytest.mark.parametrize("program", [LINKED, OPENED], ids=["linked", "opened"])
def test_compiled_programs_are_capped(program: Program, built: Path, node: Node) -> None:
    result = node.hooked(program.argv(built, "fill", "16"), program)
    refusal, taken_mib, free_mib, *totals_mib = (int(number) for number in result.stdout.split())
    assert (refusal, totals_mib) == (OUT_OF_MEMORY, [CAP_MIB, CAP_MIB])
    assert free_mib < 16
    assert CAP_MIB - CONTEXT_MIB - 16 <= taken_mib <= CAP_MIB


def test_nvidias_own_client_of_nvml_sees_the_cap(built: Path, node: Node) -> None:
    result = node.hooked(NVML.argv(built), NVML)
    assert result.stdout.split() == [str(CAP_MIB), "64", "64"], result.stderr


def test_of_two_real_programs_the_one_that_asked_for_more_gets_more(built: Path, node: Node) -> None:
    testbed = node.testbed
    for program, arguments, percent in ((BUSY, ("600",), 70), (LINKED, ("spin", "600"), 30)):
        options = ("--gpu", "1", "--percent", str(percent))
        command = ["env", f"SIMGPU_TAG={program.name}", *program.argv(built, *arguments)]
        testbed.fork(*testbed.run_arguments(*options, "--", *command))
    testbed.until(lambda status: sum(each.grants > 0 for each in status.allocations) == 2)
    names = (BUSY.name, LINKED.name)
    assert_ranked(executed_until(testbed.machine, names, LEAST_MS, gpu=1), names)
