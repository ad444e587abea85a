"""What is no case, no library for the clock, or never ends: one clear line, or each thread's place."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgeshare.contract.errors import InvalidRequest
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import ANY, Case, Client, Kernel, Program, Step, Thread, measured_ms, read_case
from tests.kit.virtual.cases.report import DiedError
from tests.kit.virtual.cases.shrink import shrink
from tests.kit.virtual.contacts import ANSWERED, HARMLESS, check_contacts, imports
from tests.kit.virtual.world import DRIVER, HOOK, World

CASE = Case(clients=(Client(program=step_programs.burn(1000, wait_every=4), percent=50),), settle_ms=10, measure_ms=50)
EXPLORE = ("-m", "tests.kit.virtual.cases.explore")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "Invalid JSON"),
        ("[]", "the whole line"),
        ("{}", "clients"),
        (CASE.line().replace('"settle_ms"', '"settle"'), "settle"),
        (CASE.line()[:-1] + ',"pace":"snail"}', "'plain', 'workstation' or 'jetson'"),
        (CASE.line()[:-1] + ',"seed":-1}', "seed"),
        (CASE.line()[:-1] + ',"noise":3}', "noise"),
        (CASE.line()[:-1] + ',"faults":[{"action":"kill","process":"c7"}]}', "there is no process 'c7'"),
        (CASE.line().replace('"launch"', '"lunch"'), "kind"),
        (CASE.line()[:-1] + ',"attackers":[{"moves":[{"kind":"send"}],"percent":6}]}', "the attacker has 0"),
        (CASE.line()[:-1] + ',"attackers":[{"moves":[{"kind":"close"}],"percent":51}]}', "request 101 %"),
        (
            CASE.line()[:-1] + ',"hooked":false,"attackers":[{"moves":[{"kind":"close"}],"percent":6}]}',
            "no manager to attack",
        ),
        (CASE.line().replace('"kind":"launch"', '"kind":"launch","object":1'), "the program has 1"),
        (CASE.line().replace('"percent":50', '"percent":101'), "percent"),
        (CASE.line().replace('"percent":50', '"percent":50,"limit":40'), "below the request"),
        (CASE.line().replace('"kind":"launch"', '"kind":"due"'), "a step that is due at each multiple of no time"),
    ],
)
def test_what_is_no_case_is_one_line(line: str, told: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_case(line)
    assert told in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_what_is_due_begins_at_each_multiple_of_its_period(world: World) -> None:
    steps = (Step(kind="launch"), Step(kind="wait"), Step(kind="due", amount=10_000_000), Step(kind="round"))
    program = Program(kernels=(Kernel(duration_ns=3_000_000),), threads=(Thread(steps=steps),))
    case = Case(clients=(Client(program=program, percent=50),), settle_ms=100, measure_ms=1000, intervals=True)
    begins_ms = [interval.begin_ns // 1_000_000 % 10 for interval in world.run(case).intervals[5:]]
    assert len(begins_ms) >= 100
    assert set(begins_ms) == {0}


def test_a_line_reads_as_the_case_that_wrote_it() -> None:
    assert read_case(CASE.line()) == CASE


@pytest.mark.parametrize(("kernel", "ms"), [(0, 2000), (1, 12_000), (ANY, 12_000)])
def test_a_program_is_measured_over_thirty_of_its_longest_submissions(kernel: int, ms: int) -> None:
    thread = Thread(steps=(Step(kind="capture", count=20, amount=kernel), Step(kind="graph")))
    kernels = (Kernel(duration_ns=100_000), Kernel(duration_ns=20_000_000))
    assert measured_ms(Program(kernels=kernels, threads=(thread,))) == ms


def test_a_program_of_kernels_alone_is_measured_for_two_seconds() -> None:
    assert measured_ms(CASE.clients[0].program) == 2000


def test_the_command_says_what_is_wrong_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, *EXPLORE, "--replay", '{"clients": []}'], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "clients" in done.stderr


def test_the_hook_touches_the_world_through_these_functions_alone() -> None:
    assert imports(HOOK) == {
        *("__errno_location", "clock_gettime", "dl_iterate_phdr", "free", "getauxval", "getenv", "getpid", "madvise"),
        *("malloc", "memchr", "memcmp", "memcpy", "memset", "mmap", "munmap", "prctl", "sigaddset", "sigdelset"),
        *("sigemptyset", "sigfillset", "sigismember", "sigpending", "sigprocmask", "snprintf", "strchr", "strcmp"),
        *("strcspn", "strlen", "syscall", "vsnprintf"),
    }
    assert not ANSWERED & HARMLESS


@pytest.mark.parametrize("library", [HOOK, DRIVER])
def test_no_instruction_asks_the_kernel_or_the_processor_for_the_time(library: Path) -> None:
    text = subprocess.run(["objdump", "-d", library], capture_output=True, text=True, check=True).stdout
    instructions = {line.split("\t")[2].split()[0] for line in text.splitlines() if line.count("\t") >= 2}
    assert "ret" in instructions
    assert not instructions & {"syscall", "sysenter", "int", "rdtsc", "rdtscp"}


def test_a_library_that_goes_past_the_clock_is_refused_with_the_symbol(tmp_path: Path) -> None:
    source, library = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text("#include <time.h>\n#include <unistd.h>\nlong f(void) { usleep(1); return syscall(1); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(InvalidRequest, match="does not import clock_gettime"):
        check_contacts(library)
    source.write_text(source.read_text() + "int g(struct timespec *t) { return clock_gettime(1, t); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(InvalidRequest, match="imports usleep, which the virtual clock does not answer"):
        check_contacts(library)


def test_what_was_simulated_before_changes_nothing(world: World) -> None:
    clients = tuple(Client(program=step_programs.turns([20, 100], 2), percent=percent) for percent in (70, 30))
    case = Case(clients=clients, settle_ms=20, measure_ms=100)
    first = world.run(case).figures["hash"]
    many = tuple(Client(program=step_programs.burn(1000), percent=2) for _ in range(40))
    world.run(Case(clients=many, settle_ms=0, measure_ms=2000, step_ms=10, intervals=True))
    assert world.run(case).figures["hash"] == first


@pytest.mark.parametrize("noise", [0, 1, 2])
def test_a_seed_says_all_that_happens(world: World, noise: int) -> None:
    clients = tuple(Client(program=step_programs.turns([20, 100], 2), percent=percent) for percent in (70, 30))
    cases = [Case(clients=clients, seed=s, noise=noise, settle_ms=20, measure_ms=100) for s in range(1, 9)]
    first, second = ([world.run(case).figures["hash"] for case in cases] for _ in range(2))
    assert first == second
    assert len(set(first)) == len(cases)


def test_shrinking_finds_the_step_that_matters() -> None:
    client = Client(program=step_programs.turns([20, 100, 400], 3), percent=50)
    case = CASE.model_copy(update={"clients": (client, client), "noise": 2, "pace": "jetson"})

    def fails(candidate: Case) -> bool:
        steps = [step for each in candidate.clients for thread in each.program.threads for step in thread.steps]
        return any(step.kind == "launch" and step.object == 4 for step in steps)

    small = shrink(case, fails)
    (client,) = small.clients
    (thread,) = client.program.threads
    assert [(step.kind, step.object) for step in thread.steps] == [("launch", 4)]
    assert (small.noise, small.pace) == (0, "plain")


@pytest.mark.whole
def test_a_case_that_hangs_ends_after_its_budget_with_every_threads_place(tmp_path: Path, libraries: Path) -> None:
    source, library = tmp_path / "hangs.c", tmp_path / "hangs.so"
    source.write_text(
        "#include <time.h>\n#include <unistd.h>\n"
        "int cuCtxSynchronize(void) { struct timespec t; clock_gettime(1, &t); while (syscall(39) != 0) for (;;); }\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    world = World(libraries, hook=library, budget_s=10)
    with pytest.raises(DiedError) as caught:
        world.run(CASE)
    world.close()
    lines = str(caught.value).splitlines()
    assert "exit status 70" in lines[0]
    assert any("c0/t0" in line and HOOK.name in line for line in lines)
    assert any("manager/loop" in line for line in lines)


def test_a_case_of_too_many_processes_says_so(world: World) -> None:
    with pytest.raises(InvalidRequest, match="request 4000 %"):
        world.run(CASE.model_copy(update={"clients": CASE.clients * 80}))
