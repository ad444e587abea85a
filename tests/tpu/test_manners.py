"""The hook as a guest between a program and its EdgeTPU: descriptors, children, threads, signals are as without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.processes.waiting import PATIENCE_S
from tests.kit.programs.compiled import FLAGS, SANITIZERS, sanitized_hook, sanitizer_runtime
from tests.kit.tpu.tpu_lab import APEX, PROGRAMS, ROOT, Lab, line, tell

THINGS = [
    "keep_errno",
    "copies",
    "ranges",
    "read_only",
    "forks",
    "spawns",
    "executes_without",
    "threads",
    "signals",
    "slices",
]
NOT_FOR = {"thread": ("forks", "signals")}
"""A child of a program with threads is more than that sanitizer can follow, and it delays signals."""


@pytest.fixture(scope="module")
def manners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("programs") / "manners"
    include = f"-I{ROOT / 'cuda_hook'}"
    subprocess.run(["gcc", *FLAGS, "-Wno-nonnull", include, "-o", str(target), str(PROGRAMS / "manners.c")], check=True)
    return target


def goes_through(lab: Lab, process: "subprocess.Popen[str]") -> list[str]:
    """Answers a program that asks whether the slice is held; what it asked."""
    said: list[str] = []
    assert process.stdout is not None
    assert process.stderr is not None
    for text in process.stdout:
        said.append(text.strip())
        if said[-1] not in ("held", "free"):
            continue
        held = said[-1] == "held"
        lab.until(lambda status, held=held: (status.allocations[0].holding_ns > 0) == held)  # type: ignore[misc]
        tell(process)
    assert (process.wait(PATIENCE_S), process.stderr.read()) == (0, "")
    return said


@pytest.mark.parametrize("thing", THINGS)
def test_all_is_as_without_the_hook(thing: str, lab: Lab, manners: Path) -> None:
    lab.manager()
    lab.allocate("mine", 40)
    goes_through(lab, lab.start("mine", [str(manners), thing, APEX]))
    # The manager may hear of its end a little later.
    lab.until(lambda status: status.allocations[0].holding_ns == 0)


def test_a_program_that_gets_the_descriptor_by_exec_has_the_slice_until_it_ends(lab: Lab, manners: Path) -> None:
    lab.manager()
    lab.allocate("mine", 40)
    assert goes_through(lab, lab.start("mine", [str(manners), "executes", APEX])) == ["held", "over"]
    lab.until(lambda status: status.allocations[0].holding_ns == 0)


@pytest.mark.parametrize("kind", SANITIZERS)
def test_sanitizers_find_nothing(kind: str, lab: Lab, manners: Path) -> None:
    found, library = sanitizer_runtime(kind), sanitized_hook(kind)
    lab.manager()
    lab.allocate("mine", 40)
    preload = os.pathsep.join((str(found), str(library), str(lab.driver)))
    for thing in THINGS:
        if thing in NOT_FOR.get(kind, ()):
            continue
        options = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1", "TSAN_OPTIONS": "exitcode=66"}
        goes_through(lab, lab.start("mine", [str(manners), thing, APEX], LD_PRELOAD=preload, **options))


def test_a_process_without_a_share_looks_once_and_never_again(lab: Lab) -> None:
    """Counted by the kernel: what it opens and asks for."""
    script = "import os\nfor _ in range(50): os.close(os.open('/dev/null', os.O_RDWR))\n"
    trace = lab.root / "trace"
    command = ["strace", "-f", "-o", str(trace), "-e", "trace=file,desc", sys.executable, "-c", script]
    process = lab.start("mine", command, EDGESHARE_TPU_HOOK_DIR="/nowhere/at/all")
    assert process.wait(PATIENCE_S) == 0
    lines = trace.read_text().splitlines()
    assert sum("/nowhere/at/all" in each for each in lines) == 1
    opens = [index for index, each in enumerate(lines) if '"/dev/null", O_RDWR' in each]
    assert len(opens) == 50
    # Nothing between one open, its close, and the next.
    assert opens[-1] - opens[10] == 2 * 39


def test_python_yields_between_inferences(lab: Lab) -> None:
    lab.manager()
    lab.allocate("mine", 40)
    script = """
import os, sys
import edgeshare
fd = os.open("/dev/apex_0", os.O_RDWR)
with edgeshare.slice() as turn:
    print("held", flush=True)
    sys.stdin.readline()
print("free", flush=True)
sys.stdin.readline()
assert not turn.kept
with edgeshare.slice() as turn:
    assert turn.fresh
os.close(fd)
"""
    assert goes_through(lab, lab.client("mine", script)) == ["held", "free"]


def test_a_slice_without_a_hook_is_nothing() -> None:
    script = "import edgeshare\nwith edgeshare.slice() as turn: print(turn.fresh)\nprint(turn.kept)"
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**plain, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True
    )
    assert done.stdout.split() == [b"False", b"False"]


def test_the_contract_is_imported_without_what_slices_need() -> None:
    script = "import edgeshare, sys; print('ctypes' in sys.modules, 'edgeshare.slices' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], env={"PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_each_time_it_is_open_is_one_grant(lab: Lab) -> None:
    """One that opens it again and again shows that it has none in between."""
    lab.manager()
    lab.allocate("mine", 40)
    script = (
        "import os\nfor _ in range(20): os.close(os.open('/dev/apex_0', os.O_RDWR))\nprint('over', flush=True)\ninput()"
    )
    process = lab.client("mine", script)
    assert line(process) == "over"
    assert lab.share("mine").grants == 20
    tell(process)
