"""Memory of hooked processes under the real manager: exact while one sleeps, given back when one dies."""

import os
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cuda_hook import wire
from edgeshare.v1.allocations_pb2 import Allocation
from simgpu.create import create
from simgpu.environment import variables
from tests.kit.manager.memory_program import CAP_MIB, INVALID_DEVICE, OUT_OF_MEMORY, SUCCESS, Program, held, measured
from tests.kit.manager.testbed import MIB, Manager, Testbed, share


@pytest.fixture
def programs(testbed: Testbed, manager: Manager) -> Iterator[list[Program]]:
    with measured(testbed, 2) as both:
        yield both


def free_bytes(testbed: Testbed) -> int:
    return CAP_MIB * MIB - share(testbed.status(), "one").memory_used_bytes


def test_what_a_sleeping_process_might_take_is_not_kept_from_others(testbed: Testbed, programs: list[Program]) -> None:
    asleep, awake = programs
    assert asleep.do(f"plain {MIB}") == SUCCESS  # and an allowance with it
    assert asleep.do(f"plain {MIB}") == SUCCESS
    asleep.process.send_signal(signal.SIGSTOP)
    os.waitpid(asleep.process.pid, os.WUNTRACED)
    free = free_bytes(testbed)
    assert free > 400 * MIB
    assert awake.do(f"plain {free + 1}") == OUT_OF_MEMORY
    assert awake.do(f"plain {free}") == SUCCESS
    assert awake.do("plain 1") == OUT_OF_MEMORY
    assert awake.ask("info") == [SUCCESS, 0, CAP_MIB * MIB]
    asleep.process.send_signal(signal.SIGCONT)
    assert asleep.do("plain 1") == OUT_OF_MEMORY
    assert asleep.do("free 0") == SUCCESS
    assert awake.do(f"plain {MIB}") == SUCCESS


def test_what_a_killed_process_had_can_be_had_again(testbed: Testbed, programs: list[Program]) -> None:
    killed, other = programs
    size = free_bytes(testbed)
    assert killed.do(f"plain {size}") == SUCCESS
    assert other.do(f"plain {size}") == OUT_OF_MEMORY
    killed.process.kill()
    # Its memory is there again once the driver lists it no more.
    testbed.until(
        lambda status: (
            len(share(status, "one").clients) == 1 and share(status, "one").memory_used_bytes <= CAP_MIB * MIB - size
        )
    )
    assert other.do(f"plain {size}") == SUCCESS


LOOKS_ONCE = """
import sys
from edgeshare.cli import main
from sharemgr.node.machine import observer
observer.INTERVAL_S = 3600.0
sys.argv[0] = "edgeshare"
main()
"""


def test_what_a_process_had_that_has_just_ended_is_looked_for_between_two_looks(testbed: Testbed) -> None:
    """The next pod may be there sooner than the next look, and would get units of another GPU, or none."""
    testbed.manager(command=(sys.executable, "-c", LOOKS_ONCE))
    with testbed.calls() as calls:
        held = calls.hold(
            Allocation(id="one", device_ids=testbed.uuids[:1], request_percent=50), wait_for_manager=False
        )
        next(held)
        client = testbed.join("one")
        answer = client.ask(wire.Reserve(1, MIB, 0, wire.MemoryKind.PLAIN))
        assert isinstance(answer, wire.Reserved)
        assert answer.granted
        client.close()
        testbed.until(lambda status: not share(status, "one").clients)
        held.close()


@contextmanager
def stopped(manager: Manager) -> Iterator[None]:
    """Meanwhile the manager is alive and does nothing."""
    manager.process.send_signal(signal.SIGSTOP)
    os.waitpid(manager.process.pid, os.WUNTRACED)
    yield
    manager.process.send_signal(signal.SIGCONT)


def test_what_came_and_went_while_the_manager_was_stopped_is_not_counted(
    testbed: Testbed, manager: Manager, programs: list[Program]
) -> None:
    """Also where its process never says anything again."""
    busy, other = programs
    free = free_bytes(testbed)
    with stopped(manager):
        assert busy.do(f"plain {free}") == SUCCESS
        assert busy.do("free 0") == SUCCESS
    # What it asked for is counted from when the manager reads of it until it is found to have ended.
    testbed.until(lambda _: other.do(f"plain {free}") == SUCCESS)
    # Without its manager it knows only of what it has itself.
    testbed.until(lambda _: busy.ask("info") == [SUCCESS, 0, CAP_MIB * MIB])
    assert busy.do("plain 1") == OUT_OF_MEMORY


def test_what_a_process_keeps_while_it_is_without_its_manager_is_given_to_nobody(
    testbed: Testbed, manager: Manager, programs: list[Program]
) -> None:
    """The manager hears its greeting before the process hears of that."""
    keeper, other = programs
    free = free_bytes(testbed)
    kept = free // 2
    with stopped(manager):
        assert keeper.do(f"plain {kept}") == SUCCESS
        assert keeper.ask("info")[0] == SUCCESS
    testbed.until(lambda status: sum(not each.dying for each in share(status, "one").clients) == 2)
    assert other.do(f"plain {free - kept + 1}") == OUT_OF_MEMORY
    # Which it may be refused until the late grant is set right by what the driver says.
    testbed.until(lambda _: free_bytes(testbed) == free - kept)
    assert other.do(f"plain {free - kept}") == SUCCESS
    assert keeper.do("free 0") == SUCCESS
    testbed.until(lambda _: keeper.ask("info")[0] == SUCCESS and free_bytes(testbed) == kept)
    assert other.do(f"plain {kept}") == SUCCESS


def test_a_driver_that_gives_its_only_device_no_identity_is_capped(testbed: Testbed, manager: Manager) -> None:
    """Its programs see another driver than the manager, as those of a virtual GPU may."""
    create(testbed.root / "unnamed", gpus=1, memory_mib=4096, uuids=[f"GPU-{uuid.UUID(int=0)}"])
    with held(testbed, "one", CAP_MIB):
        program = Program(testbed, "one", **variables(testbed.root / "unnamed", {}))
        try:
            assert program.do("start") == SUCCESS
            # Its driver is not the one that says what a context takes.
            testbed.until(lambda status: share(status, "one").memory_used_bytes == 0)
            assert program.do(f"plain {1000 * MIB}") == SUCCESS
            assert program.do(f"plain {25 * MIB}") == OUT_OF_MEMORY
            assert program.ask("info") == [SUCCESS, 24 * MIB, CAP_MIB * MIB]
            assert [(each.pid, each.dying) for each in share(testbed.status(), "one").clients] == [
                (program.process.pid, False)
            ]
        finally:
            program.end()


def test_what_a_process_uses_counts_on_the_gpu_that_it_is_on(testbed: Testbed, manager: Manager) -> None:
    """Whatever the process calls it: each rank of a job often sees one GPU of several, as its first."""
    with testbed.calls() as calls:
        wanted = Allocation(id="both", device_ids=testbed.uuids[:2], request_percent=100, memory_mib=CAP_MIB)
        answers = calls.hold(wanted, wait_for_manager=False)
        next(answers)
        second = Program(testbed, "both", CUDA_VISIBLE_DEVICES="1")
        try:
            assert second.do("start") == SUCCESS
            assert second.do(f"plain {300 * MIB}") == SUCCESS
            first_bytes, second_bytes = share(testbed.status(), "both").memory_bytes
            assert first_bytes == 0
            assert second_bytes >= 300 * MIB
            assert second.ask("info")[2] == CAP_MIB * MIB
        finally:
            second.end()
            answers.close()


@pytest.mark.parametrize("visible", ["1", "1,0"])
def test_a_gpu_that_is_not_the_allocations_cannot_be_used(testbed: Testbed, manager: Manager, visible: str) -> None:
    log = testbed.root / "hook.log"
    with held(testbed, "one", CAP_MIB):
        program = Program(testbed, "one", CUDA_VISIBLE_DEVICES=visible, EDGESHARE_HOOK_LOG=str(log))
        try:
            assert program.do("start 0") == INVALID_DEVICE
            assert program.do("create 0") == INVALID_DEVICE
            assert program.do(f"chunk {2 * MIB} 1 0") == OUT_OF_MEMORY
            if "0" in visible:
                assert program.do("start 1") == SUCCESS
                assert program.do(f"plain {MIB}") == SUCCESS
        finally:
            program.end()
    assert log.read_text().count("is none of its allocation's and is refused") == 1
    assert testbed.machine.gpus()[1].used_bytes == 0
