"""Memory of hooked processes under the real manager: exact while one sleeps, given back when one dies, and told."""

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgeshare.cli.run import hook_library
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from edgeshare.v1.status_pb2 import AllocationStatus
from simgpu.create import CONTEXT_OVERHEAD_MIB, create
from simgpu.environment import variables
from tests.kit.apiserver.serving import serving
from tests.kit.manager.testbed import MIB, Manager, Testbed, share
from tests.kit.pages.pages import ON, Pages
from tests.kit.processes.waiting import PATIENCE_S

PROGRAM = Path(__file__).parents[1] / "kit/hook/programs/memory/memory.py"
SUCCESS, OUT_OF_MEMORY, INVALID_DEVICE = 0, 2, 101
CAP_MIB = 1024
SMALL_MIB = 100
"""Below a bare context."""


class Program:
    """A hooked process that gets memory as it is told."""

    def __init__(self, testbed: Testbed, allocation_id: str, **more: str) -> None:
        hooked = {"LD_PRELOAD": str(hook_library()), "EDGESHARE_HOOK_DIR": str(testbed.folder(allocation_id))}
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            env={**testbed.environment, **hooked, **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self._line() == "ready"

    def do(self, command: str) -> int:
        """Gives a command; the driver's result."""
        return self.ask(command)[0]

    def ask(self, command: str) -> list[int]:
        """Gives a command; all numbers of the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        return [int(word) for word in self._line().removeprefix("= ").split()]

    def end(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def _line(self) -> str:
        stdout = self.process.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            assert selector.select(PATIENCE_S), "the program says nothing"
        return stdout.readline().strip()


@contextmanager
def held(testbed: Testbed, allocation_id: str, memory_mib: int, owner: Owner | None = None) -> Iterator[None]:
    """An allocation of one GPU."""
    with testbed.calls() as calls:
        wanted = Allocation(
            id=allocation_id,
            device_ids=testbed.uuids[:1],
            request_percent=30,
            memory_mib=memory_mib,
            owner=owner,
        )
        answers = calls.hold(wanted, wait_for_manager=False)
        next(answers)
        yield
        answers.close()


@contextmanager
def measured(testbed: Testbed, count: int) -> Iterator[list[Program]]:
    """So many that have made their contexts, which are measured."""
    with held(testbed, "one", CAP_MIB):
        programs = [Program(testbed, "one") for _ in range(count)]
        try:
            for program in programs:
                assert program.do("start") == SUCCESS
            contexts = [count * CONTEXT_OVERHEAD_MIB * MIB]
            testbed.until(lambda status: share(status, "one").memory_overhead_bytes == contexts)
            # From the second look that finds the same it is known what one takes.
            testbed.until(lambda _: (testbed.state_dir / "contexts.json").exists())
            yield programs
        finally:
            for program in programs:
                program.end()


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
    testbed.until(lambda _: free_bytes(testbed) >= free)
    assert other.do(f"plain {free}") == SUCCESS
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


def refused(testbed: Testbed, allocation_id: str, owner: Owner | None = None) -> AllocationStatus:
    """What status says of an allocation whose programs tried in vain to make contexts, again and again."""
    with held(testbed, allocation_id, SMALL_MIB, owner):
        for _ in range(2):
            program = Program(testbed, allocation_id)
            try:
                assert [program.do("start"), program.do("create 0")] == [OUT_OF_MEMORY] * 2
            finally:
                program.end()
        return share(testbed.status(), allocation_id)


def test_a_cap_below_a_context_is_said_by_the_call_the_log_status_metric_and_an_event_of_the_pod(
    testbed: Testbed,
) -> None:
    """The size of a context is known from another on that GPU."""
    with serving(testbed.root) as (api, kubeconfig):
        manager = testbed.manager(f"{ON}node_name: n1\nkubeconfig: {kubeconfig}\n")
        with measured(testbed, 1):
            (context_bytes,) = share(testbed.status(), "one").memory_overhead_bytes
            uids = {"first": str(uuid.uuid4()), "second": str(uuid.uuid4())}
            for name, uid in uids.items():
                owner = Owner(namespace="team", pod=f"pod-{name}", pod_uid=uid, container="main")
                assert refused(testbed, name, owner).refused_context_bytes == context_bytes
            with held(testbed, "small", SMALL_MIB):
                program = Program(testbed, "small")
                try:
                    assert program.do("start") == OUT_OF_MEMORY
                    told = Pages(manager).values()["edgeshare_allocation_refused_context_bytes,small,,,"]
                finally:
                    program.end()
            assert told == context_bytes
            # An event of the first that was one too many would come before the second's.
            testbed.until(
                lambda _: {event["involvedObject"]["name"] for event in api.events} == {"pod-first", "pod-second"}
            )
        manager.end()
    events = {event["involvedObject"]["uid"]: event for event in api.events}
    assert len(api.events) == len(events) == 2
    context_mib = context_bytes // MIB
    for name, uid in uids.items():
        event = events[uid]
        assert event["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": f"pod-{name}",
            "uid": uid,
        }
        assert (event["type"], event["reason"]) == ("Warning", "GPUContextRefused")
        for said in (
            f"container main: a context on device 0 takes about {context_mib} MiB",
            f"the cap of {SMALL_MIB} MiB",
            "raise the cap (edge/gpu-memory-mib",
        ):
            assert said in event["message"]
    said = [line for line in manager.log().splitlines() if f"takes about {context_mib} MiB" in line]
    assert [re.findall(r"allocation (\w+):", line) for line in said] == [["first"], ["second"], ["small"]]


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


SMALL_CAP_MIB = 512


def passes_no_cap(testbed: Testbed) -> None:
    """Of a program that allocates at once after its first context, before the driver is looked at."""
    with held(testbed, "small", SMALL_CAP_MIB):
        program = Program(testbed, "small")
        try:
            assert program.do("start") == SUCCESS
            assert program.do(f"plain {(SMALL_CAP_MIB - CONTEXT_OVERHEAD_MIB + 1) * MIB}") == OUT_OF_MEMORY
            assert testbed.machine.gpus()[0].used_bytes <= SMALL_CAP_MIB * MIB
            # What a context was thought to take beyond what it takes comes back when it is measured.
            testbed.until(lambda status: share(status, "small").memory_used_bytes == CONTEXT_OVERHEAD_MIB * MIB)
            assert program.do(f"plain {(SMALL_CAP_MIB - CONTEXT_OVERHEAD_MIB) * MIB}") == SUCCESS
        finally:
            program.end()


def test_what_the_first_context_of_a_new_model_is_thought_to_take_refuses_nothing(
    testbed: Testbed, manager: Manager
) -> None:
    with held(testbed, "small", SMALL_CAP_MIB):
        program = Program(testbed, "small")
        try:
            assert program.do("start") == SUCCESS
            assert program.do(f"plain {(SMALL_CAP_MIB - CONTEXT_OVERHEAD_MIB) * MIB}") == SUCCESS
            testbed.until(lambda status: share(status, "small").memory_used_bytes == SMALL_CAP_MIB * MIB)
        finally:
            program.end()


def test_a_restarted_manager_knows_what_a_context_takes(testbed: Testbed) -> None:
    kept = testbed.state_dir / "contexts.json"
    before = testbed.manager()
    with measured(testbed, 1):
        pass
    before.end()
    (row,) = json.loads(kept.read_text())["contexts"]
    assert row["bytes"] == CONTEXT_OVERHEAD_MIB * MIB
    written_ns = kept.stat().st_mtime_ns
    after = testbed.manager()
    passes_no_cap(testbed)
    assert refused(testbed, "too-small").refused_context_bytes == CONTEXT_OVERHEAD_MIB * MIB
    after.end()
    assert kept.stat().st_mtime_ns == written_ns
