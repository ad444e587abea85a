"""Several processes on one GPU. How much each gets of it is judged exactly on the virtual clock
(tests/virtual/test_driver.py)."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from simgpu.readings import Interval
from tests.kit.machine.simulated import MS, Simulated

MANY = 20
TURN_NS = 2 * MS
"""As in simgpu/machine/engine/engine.h."""


def test_kernels_of_two_processes_never_overlap(either: Simulated) -> None:
    programs = [
        either.burn("a", "--seconds", 0.5, "--kernel-us", 300, "--mode", "sync"),
        either.burn("b", "--seconds", 0.5, "--kernel-us", 700, "--sync-every", 8),
    ]
    for program in programs:
        program.result()
    log = either.log()
    assert {each.process for each in log} == {each.id for each in either.machine.processes()}
    assert all(first.end_ns <= second.begin_ns for first, second in pairwise(log))


def test_fifo_runs_whole_kernels_in_turn(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(scheduling="fifo")
    lengths_us = {"a": 1000, "b": 4000}
    for tag, us in lengths_us.items():
        simulated.burn(tag, "--seconds", 600, "--kernel-us", us, "--mode", "sync")
    simulated.until(lambda: in_turn(simulated) >= MANY)
    tags = simulated.machine.tags()
    assert all(each.last for each in simulated.log())
    assert {(tags[each.process], each.end_ns - each.begin_ns) for each in simulated.log()} == {
        (tag, us * 1000) for tag, us in lengths_us.items()
    }


def in_turn(simulated: Simulated) -> int:
    """How often another process's began with the end of one: it was queued while that ran."""
    return sum(
        before.process != after.process and before.end_ns == after.begin_ns
        for before, after in pairwise(simulated.log())
    )


def test_timeslice_interrupts_a_kernel_for_another_program(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(scheduling="timeslice")
    simulated.burn("a", "--seconds", 600, "--kernel-us", 100)
    simulated.burn("b", "--seconds", 600, "--kernel-us", 50_000, "--sync-every", 4)
    simulated.until(lambda: len(interrupted(simulated)) >= MANY)
    # It had its turn, whole, whatever the kernel that it is a part of.
    assert {each.end_ns - each.begin_ns for each in interrupted(simulated)} == {TURN_NS}


def interrupted(simulated: Simulated) -> list[Interval]:
    """Parts of b's kernels within which a runs next, and then b again."""
    tags = simulated.machine.tags()
    log = simulated.log()
    return [
        before
        for before, after in pairwise(log)
        if not before.last and (tags[before.process], tags[after.process]) == ("b", "a")
    ]


def test_a_waiting_program_wakes_when_its_kernel_ends(either: Simulated) -> None:
    """The other one's kernels are in between; the driver foretells the end, and neither sleeps past it for long."""
    script = """
cu.start()
function, late = cu.function(), []
for _ in range(40):
    cu.launch(function, 3_000_000)
    cu.ok("cuCtxSynchronize")
    late.append(time.monotonic_ns())
result(late)
"""
    programs = [either.python(script, SIMGPU_TAG=tag) for tag in "ab"]
    tags = {tag: program.result() for tag, program in zip("ab", programs, strict=True)}
    names = either.machine.tags()
    for tag, woken_ns in tags.items():
        ends_ns = [each.end_ns for each in either.log() if each.last and names[each.process] == tag]
        late_ns = sorted(woken - end for woken, end in zip(woken_ns, ends_ns, strict=True))
        assert late_ns[0] >= 0
        # Machines are noisy: the middle of forty, against the length of a kernel.
        assert late_ns[20] < 3 * MS


def test_gpus_are_independent(simulated: Simulated) -> None:
    programs = [simulated.burn("", "--device", device, "--seconds", 60, "--mode", "sync") for device in (0, 1)]

    def at_once() -> bool:
        first, second = simulated.log(0), simulated.log(1)
        return bool(first and second) and max(first[0].begin_ns, second[0].begin_ns) < min(
            first[-1].end_ns, second[-1].end_ns
        )

    simulated.until(at_once)
    for program in programs:
        program.kill()
    for process in simulated.machine.processes():
        assert sorted(process.executed_ns)[0] == 0 < sorted(process.executed_ns)[1]


def test_what_each_process_executed_is_what_the_log_says(either: Simulated) -> None:
    for program in [
        either.burn("a", "--seconds", 0.3, "--kernel-us", "20:9,3000:1"),
        either.burn("b", "--seconds", 0.3, "--kernel-us", 200, "--mode", "think", "--think-us", 50),
    ]:
        program.result()
    log = either.log()
    for process in either.machine.processes():
        own = [each for each in log if each.process == process.id]
        assert process.executed_ns[0] == sum(each.end_ns - each.begin_ns for each in own)
        assert process.entries[0] == sum(each.last for each in own)
    assert either.machine.gpus()[0].busy_ns == sum(each.end_ns - each.begin_ns for each in log)


@pytest.mark.parametrize("door", ["linked", "dlopen", "getproc"])
def test_burn_finds_the_driver_through_every_door(simulated: Simulated, door: str) -> None:
    summary = simulated.burn("x", "--door", door, "--seconds", 0.1, "--mode", "sync").result()
    assert summary["launches"] == simulated.process("x").entries[0] > 0
    assert summary["kernel_ns"] == simulated.process("x").executed_ns[0]


def test_burn_draws_kernels_by_weight_and_idles_when_told(simulated: Simulated) -> None:
    options = ("--kernel-us", "100:3,1000:1", "--idle-from", 0.1, "--idle-until", 0.3, "--seconds", 0.4)
    summary = simulated.burn("x", *options, "--mode", "sync", "--streams", 3).result()
    log = simulated.log()
    lengths = [each.end_ns - each.begin_ns for each in log]
    assert set(lengths) == {100_000, 1_000_000}
    assert 1.5 < lengths.count(100_000) / lengths.count(1_000_000) < 6
    assert {each.stream for each in log} == {1, 2, 3}
    gaps = [second.begin_ns - first.end_ns for first, second in pairwise(log)]
    assert max(gaps) >= 150 * MS
    assert summary["synchronizations"] == summary["launches"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--mode", "quick"), "--mode cannot be quick"),
        (("--kernel-us", "1,x"), "--kernel-us cannot be 1,x"),
        (("--seconds", "-1"), "--seconds cannot be -1"),
        (("--door", "window"), "--door window is not known"),
        (("--device", "9"), "CUDA_ERROR_INVALID_DEVICE"),
        (("--alloc-mib", "9999999"), "CUDA_ERROR_OUT_OF_MEMORY"),
        (("more",), "more is no option"),
        (("--think-us", "9"), "--think-us is for --mode think alone"),
        (("--mode", "think", "--period-us", "9"), "--period-us and --requests for --mode request"),
        (("--requests", "9"), "--period-us and --requests for --mode request"),
    ],
)
def test_burn_says_what_was_wrong(simulated: Simulated, options: tuple[str, ...], says: str) -> None:
    status, error = simulated.burn("", *options).failure()
    assert status != 0
    assert says in error
    assert len(error.splitlines()) == 1
