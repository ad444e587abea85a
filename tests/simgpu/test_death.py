"""Processes that end without a word, at any moment."""

import os
import random
import signal
import time
from itertools import pairwise

from tests.kit.machine.simulated import MIB, MS, Simulated

HOLDS = """
cu.start()
pointer = cu.alloc(500 << 20)
function = cu.function()
for _ in range(1000):
    cu.launch(function, 50_000_000)
print("queued", flush=True)
time.sleep(60)
"""


def test_a_killed_processes_queue_is_dropped_and_its_memory_is_free(either: Simulated) -> None:
    program = either.python(HOLDS, SIMGPU_TAG="dead")
    assert program.line() == "queued"
    # A context, the allocation, and the kernel's image.
    assert 756 * MIB < either.process("dead").memory_bytes[0] < 757 * MIB
    program.kill()
    killed_ns = time.monotonic_ns()
    script = """
cu.start()
cu.launch(cu.function(), 1_000_000)
cu.ok("cuCtxSynchronize")
result([time.monotonic_ns(), cu.memory()[0]])
"""
    done_ns, free_bytes = either.python(script).result()
    # 50 s were queued. The kernel that ran, and a Python interpreter's start, are much less.
    assert done_ns - killed_ns < 25_000 * MS
    assert (2048 - 257) * MIB < free_bytes < (2048 - 256) * MIB
    dead = either.process("dead")
    assert not dead.alive
    assert dead.executed_ns[0] < 1000 * 50 * MS / 4


def test_a_waiter_behind_a_killed_process_goes_on(simulated: Simulated) -> None:
    program = simulated.python(HOLDS, SIMGPU_TAG="dead")
    assert program.line() == "queued"
    waiter = simulated.python(
        """
cu.start()
cu.launch(cu.function(), 1_000_000)
print("waits", flush=True)
cu.ok("cuCtxSynchronize")
result(time.monotonic_ns())
"""
    )
    assert waiter.line() == "waits"
    killed_ns = time.monotonic_ns()
    program.kill()
    # One kernel of 50 ms runs to its end; 1,000 were queued.
    assert waiter.result() - killed_ns < 15_000 * MS


def test_a_stopped_processes_work_goes_on(simulated: Simulated) -> None:
    program = simulated.python(HOLDS, SIMGPU_TAG="stopped")
    assert program.line() == "queued"
    os.kill(program.process.pid, signal.SIGSTOP)
    before = simulated.process("stopped").executed_ns[0]
    simulated.until(lambda: simulated.process("stopped").executed_ns[0] > before + 100 * MS)
    assert simulated.process("stopped").alive


def test_a_process_killed_at_any_moment_leaves_a_whole_machine(either: Simulated) -> None:
    """Busy launchers and waiters are killed at random moments, some of them inside the engine or a lock. However late
    the log is read, it holds all that was executed since: each submits for so short a time."""
    chance = random.Random(1)
    log, cursor = [], 0
    survivor = either.burn("survivor", "--seconds", 5, "--kernel-us", 60, "--mode", "sync")
    briefly = ("--seconds", 60, "--idle-from", 0.1, "--idle-until", 60)
    for number in range(60):
        mode = ("sync", "async", "think")[number % 3]
        program = either.burn(f"victim{number}", *briefly, "--kernel-us", "5:3,20", "--mode", mode)
        either.until(lambda tag=f"victim{number}": any(each.tag == tag for each in either.machine.processes()))
        time.sleep(chance.random() * 0.02)
        program.kill()
        more, cursor = either.machine.log(0, cursor)
        log += more
    assert survivor.result()["launches"] > 100
    either.until(lambda: either.machine.gpus()[0].used_bytes == 0)
    log += either.machine.log(0, cursor)[0]
    processes = either.machine.processes()
    assert len(processes) == 61
    for process in processes:
        own = [each for each in log if each.process == process.id]
        assert process.executed_ns[0] == sum(each.end_ns - each.begin_ns for each in own)
    assert all(first.end_ns <= second.begin_ns for first, second in pairwise(log))
    assert either.machine.gpus()[0].busy_ns == sum(process.executed_ns[0] for process in processes)


def test_the_dead_are_remembered(simulated: Simulated) -> None:
    for number in range(3):
        simulated.burn(f"n{number}", "--seconds", 0.05, "--mode", "sync").result()
    processes = simulated.machine.processes()
    assert [each.tag for each in processes] == ["n0", "n1", "n2"]
    assert all(not each.alive and each.executed_ns[0] > 0 for each in processes)
    assert all(each.name == "burn" and each.start_ns < each.end_ns for each in processes)
