"""The virtual machine itself, with small programs of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.compiler import compile_program
from tests.kit.programs.compiled import compiled
from tests.kit.virtual.vt.build import FOLDER, GCC, LIBRARY, LINK

ENDED_BY_BUDGET, DEADLOCK, IMPOSSIBLE = 70, 71, 72

EXACT, SPREAD, DELAYS = 0, 1, 2

UNWOUND = 1000
"""What deaths.c writes to shared memory at its end: a dead process does so, too, but nobody sees it."""

LOOK_FOR_PLACES = "-fno-optimize-sibling-calls"  # a call in the last line would leave nothing of its caller


class Programs:
    """The C programs of ``vt/programs``, linked to the virtual machine."""

    def __init__(self) -> None:
        sources = FOLDER / "programs"
        others = [str(path) for path in sorted(sources.glob("*.c")) if path.stem != "racy"]
        flags = (*GCC, "-pthread", LOOK_FOR_PLACES, f"-I{FOLDER}")
        self.program = compiled(
            "main",
            LIBRARY,
            [*flags, "-fsanitize=thread", "-c", str(sources / "racy.c"), "-o", "racy.o"],
            [*flags, *others, "racy.o", "-o", "main", "-Wl,--no-as-needed", *LINK],
        )
        self.library = self.program.with_name("libvt.so")

    def start(self, name: str, fds: tuple[int, ...] = (), **options: int) -> subprocess.CompletedProcess[str]:
        """Runs one of them to its end."""
        words = [f"{option}={value}" for option, value in options.items()]
        return subprocess.run(
            ["setarch", "-R", self.program, name, *words], capture_output=True, text=True, check=False, pass_fds=fds
        )

    def run(self, name: str, fds: tuple[int, ...] = (), **options: int) -> dict[str, list[str]]:
        """What it says, word by word; its end has to be a good one."""
        done = self.start(name, fds, **options)
        assert (done.returncode, done.stderr) == (0, "")
        said: dict[str, list[str]] = {}
        for line in done.stdout.splitlines():
            what, _, value = line.partition(" ")
            said.setdefault(what, []).append(value)
        return said

    def numbers(self, name: str, fds: tuple[int, ...] = (), **options: int) -> dict[str, int]:
        """What it says, of each the last."""
        said = self.run(name, fds, **options)
        return {what: int(values[-1]) for what, values in said.items() if what != "hash"}

    def hash(self, name: str, **options: int) -> str:
        return self.run(name, **options)["hash"][0]


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs()


def test_a_seed_says_all(programs: Programs) -> None:
    runs = [[programs.hash("mixed", seed=seed, noise=DELAYS) for seed in range(20)] for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 20


@pytest.mark.parametrize("seed", range(5))
def test_no_effect_before_its_cause(programs: Programs, seed: int) -> None:
    said = programs.numbers("order", seed=seed, noise=DELAYS)
    assert (said["effects"], said["inversions"]) == (1800, 0)


@pytest.mark.parametrize(("deadline_us", "wake_us", "wins"), [(1000, 1100, "deadline"), (1100, 1000, "wake")])
@pytest.mark.parametrize("seed", range(3))
def test_what_comes_first_wins(programs: Programs, deadline_us: int, wake_us: int, wins: str, seed: int) -> None:
    said = programs.numbers("race", seed=seed, deadline_us=deadline_us, wake_us=wake_us)
    assert (said["timed_out"], said["woken"]) == ((1, 0) if wins == "deadline" else (0, 1))
    assert 1000 <= said["waited_us"] < 1020


def test_a_lost_wake_is_found_at_the_deadline(programs: Programs) -> None:
    lost = programs.numbers("lost_wake", number=1, deadline_us=2000, wake_us=1000)
    kept = programs.numbers("lost_wake", number=2, deadline_us=2000, wake_us=1000)
    assert (lost["timed_out"], lost["wakes"]) == (1, 1)
    assert (kept["timed_out"], kept["wakes"]) == (0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_threads_keep_what_pthread_promises(programs: Programs, seed: int) -> None:
    said = programs.numbers("threads", seed=seed, noise=DELAYS)
    assert (said["counter"], said["joined"], said["most_inside"], said["torn"]) == (200, 10, 2, 0)


def test_two_processes_meet_at_a_word_of_a_file(programs: Programs) -> None:
    said = programs.numbers("shared_futex")
    assert (said["two_places"], said["private_woken"]) == (1, 0)
    assert 0 < said["after_wake_us"] < 100


def test_timers_expire_on_the_simulated_clock(programs: Programs) -> None:
    said = programs.run("timers", noise=EXACT)
    # Each is seen a wake later (5 us) and the cost of the calls (2 us).
    assert [round(int(value), -2) for value in said["expired_us"]] == [3000, 5000, 7000]
    assert (said["interval_ms"], said["after_disarming"]) == (["2"], ["0"])
    assert round(int(said["ended_us"][0]), -2) == 16000


def test_who_looks_at_nothing_but_the_clock_waits_and_who_does_something_between_does_not(programs: Programs) -> None:
    said = programs.run("looks", noise=EXACT)
    # The first eight cost 40 ns, each of the others 40 more than the one before, up to the 64th.
    assert said["from_one_ns"] == [str(8 * 40 + sum(40 * (look - 7) for look in range(9, 65)) + 36 * 40 * 57)]
    assert said["from_two_ns"] == [str(100 * 40)]


@pytest.mark.parametrize("noise", [EXACT, SPREAD, DELAYS])
@pytest.mark.parametrize("seed", range(3))
def test_looks_until_a_time_are_what_a_loop_of_them_is(programs: Programs, noise: int, seed: int) -> None:
    own, at_once = (programs.run("loops", seed=seed, noise=noise, at_once=at_once) for at_once in (0, 1))
    assert own == at_once
    assert int(own["loops"][0]) > 1000
    # The second was stopped by its 5,000th point, the third killed by its 5,003rd.
    assert int(own["points_of"][1]) > 5000
    assert int(own["points_of"][2]) == 5003


def test_sockets_block_and_end(programs: Programs) -> None:
    said = programs.numbers("sockets", noise=DELAYS)
    assert (said["echoed"], said["end"], said["broken"]) == (20, 0, 1)


def test_who_connects_waits_for_room(programs: Programs) -> None:
    said = programs.numbers("crowd", noise=DELAYS)
    # A listener for four takes five in before it accepts any.
    assert (said["at_first"], said["after_three"], said["refused"]) == (5, 8, 1)


def test_a_process_knows_its_peer(programs: Programs) -> None:
    said = programs.numbers("peers")
    true = ("its_pid", "began_alike", "other_files", "readable_after", "gone", "no_state", "no_pidfd")
    assert {what: said[what] for what in true} == dict.fromkeys(true, 1)
    assert (said["pidfd_option"], said["there"], said["readable"]) == (-92, 0, 0)
    assert (chr(said["state"]), chr(said["stopped"])) == ("S", "T")


def test_record_locks_are_simulated_processes(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "locked").touch()
    fd = os.open(tmp_path / "locked", os.O_RDWR)
    said = programs.numbers("record_locks", (fd,), file=fd)
    os.close(fd)
    assert (said["holder"], said["refused"], said["description"]) == (1, -11, -11)
    assert (said["between"], said["behind"]) == (0, 0)
    assert said["waited_ms"] == 10


def test_a_process_has_its_own_variables_and_libraries(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib.c").write_text("int nothing;\n")
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        compile_program(tmp_path / "lib.c", tmp_path, "-shared", "-fPIC").rename(tmp_path / name / "lib.so")
        monkeypatch.setenv(name.upper(), str(tmp_path / name))
    said = programs.run("environment")
    assert (said["of_one"], said["of_judge"]) == (["1"], ["0"])
    assert (said["variable"], said["path"]) == (["7", "0"], ["1", "1"])


def assert_ended_well(said: dict[str, int]) -> None:
    """What others see of a dead process is what it did before: nothing is half gone, and nothing comes later."""
    assert (said["gone"], said["written_later"], said["locked"]) == (1, 0, 0)
    assert said["received"] - said["sent"] in (0, 1), "it may have died before it knew that it sent the last"
    if said["first"] != UNWOUND:
        assert said["first"] - 1 <= said["received"] <= said["first"]
        assert said["second"] in (said["received"], said["received"] - 1)
    assert said["woken"] <= said["second"]


@pytest.mark.parametrize("program", ["victim_dies", "judge_dies"])
def test_a_process_dies_at_each_of_its_points(programs: Programs, program: str) -> None:
    whole = programs.numbers(program)
    points = whole["points_of"]
    assert 25 < whole["unwinds_at"] < points
    sent = set()
    for number in range(1, points + 1):
        said = programs.numbers(program, number=number)
        assert_ended_well(said)
        assert (said["first"] == UNWOUND) == (number > whole["unwinds_at"])
        sent.add(said["sent"])
    assert sent == set(range(7)), "it died before the first message, after the last, and between any two"


def test_who_waits_is_woken_by_its_end(programs: Programs) -> None:
    said = programs.numbers("judge_is_killed")
    assert (said["ended_ms"], said["error"]) == (1, 9)
    assert (said["reused"], said["written"], said["cut"], said["size"]) == (1, -1, -1, 0)


def interpret(programs: Programs, number: int, folder: Path) -> dict[str, str]:
    folder.mkdir()
    program = FOLDER / "programs" / "interpreter.py"
    environment = {**os.environ, "LD_PRELOAD": str(programs.library), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        ["setarch", "-R", sys.executable, "-I", program, programs.library, str(number), folder],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_an_interpreter_outlives_its_process(programs: Programs, tmp_path: Path) -> None:
    whole = interpret(programs, 0, tmp_path / "whole")
    assert (whole["first"], whole["second"]) == ("echoed 30", "echoed 30")
    assert whole == interpret(programs, 0, tmp_path / "again_")
    for number in range(1, int(whole["points"]), int(whole["points"]) // 8):
        said = interpret(programs, number, tmp_path / str(number))
        assert (int(said["points"]), said["second"]) == (number, "echoed 30")


def test_a_stopped_process_does_nothing(programs: Programs) -> None:
    said = programs.numbers("stops")
    assert said["running"] in (9, 10)
    assert said["while_stopped"] == 0
    assert said["continued"] in (9, 10)


def test_a_process_stops_at_a_point_for_a_time(programs: Programs) -> None:
    said = programs.numbers("stops_itself")
    assert said["before"] <= 10, "its tenth point is at 10 ms, and it stops there until 60 ms"
    assert said["before"] + 8 <= said["after"] <= said["before"] + 11


def test_a_run_without_points_ends_within_its_budget(programs: Programs) -> None:
    done = programs.start("spins", budget_s=1)
    assert done.returncode == ENDED_BY_BUDGET
    assert "judge/spinner: running" in done.stderr
    assert "now in main+0x" in done.stderr


def test_a_deadlock_is_told_with_every_place(programs: Programs) -> None:
    done = programs.start("deadlock")
    assert done.returncode == DEADLOCK
    waiting = [line for line in done.stderr.splitlines() if "waits for mutex" in line]
    assert len(waiting) == 2
    for line in waiting:
        offset = line.split("called from main+")[1].split()[0]
        found = subprocess.run(
            ["addr2line", "-f", "-e", programs.program, offset], capture_output=True, text=True, check=True
        )
        assert found.stdout.splitlines()[0] == "embrace"


def test_what_is_not_there_is_told_in_a_line(programs: Programs) -> None:
    done = programs.start("too_many")
    assert done.returncode == IMPOSSIBLE
    assert done.stderr == "vt: more processes than there is room for\n"


def test_a_run_without_its_delays_is_one_with_spread_costs(programs: Programs) -> None:
    for seed in range(5):
        assert programs.hash("mixed", seed=seed, noise=DELAYS, delays_most=0) == programs.hash(
            "mixed", seed=seed, noise=SPREAD
        )


def test_the_first_delays_stay_where_they_were(programs: Programs) -> None:
    """However many are allowed, those before the first that is not are the same ones: so a failing run is shrunk."""
    whole = programs.run("mixed", noise=DELAYS)
    most = int(whole["delays"][0])
    assert most > 3
    assert programs.hash("mixed", noise=DELAYS, delays_most=most) == whole["hash"][0]
    limited = [programs.run("mixed", noise=DELAYS, delays_most=number) for number in range(most)]
    assert [int(said["delays"][0]) for said in limited] == list(range(most))
    assert len({said["hash"][0] for said in limited} | {whole["hash"][0]}) == most + 1


def test_an_update_is_lost_between_two_atomic_operations(programs: Programs) -> None:
    lost = [programs.numbers("lost_update", seed=seed, atomics=1)["lost"] for seed in range(5)]
    assert any(lost)
    assert not any(programs.numbers("lost_update", seed=seed)["lost"] for seed in range(5))
