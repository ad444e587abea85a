"""Random sequences of calls that get and give back memory, of stops and kills of programs and of kills of the manager,
beside a model: the books say what there is, and in the end all is free again to the byte."""

import os
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.kit.hook.manager import CAP_MIB, MIB, PATIENCE_S, ScriptedManager
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Client, Stage

USUAL, SOAK = 100, 10_000
"""Sequences of `make test` and `make soak`."""

STRETCH = 100
"""So many are one test: what each of its machines keeps open is closed at its end."""

EXACT = {
    "plain": ("plain {bytes}", "free"),
    "managed": ("managed {bytes}", "free"),
    "array": ("array 512 {rows}", "free_array"),
    "chunk": ("chunk {bytes} 1 0", "release"),
    "external": ("external {bytes}", "free_external"),
}
"""What counts with its size, for an even number of MiB, and what frees it."""

WHO = st.integers(0, 1)
HALVES_MIB = st.integers(1, 8) | st.integers(100, 300)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("get"), WHO, st.sampled_from([*EXACT]), HALVES_MIB),
        st.tuples(st.just("get_asynchronous"), WHO, st.integers(1, 40)),
        st.tuples(st.just("free"), WHO, st.integers(0, 20)),
        st.tuples(st.just("sync"), WHO),
        st.tuples(st.just("share"), WHO, HALVES_MIB),
        st.tuples(st.just("stop"), WHO, st.sampled_from([*EXACT]), HALVES_MIB),
        st.tuples(st.just("kill"), WHO),
        st.tuples(st.just("kill_manager")),
    ),
    max_size=25,
)


@dataclass
class Program:
    """One of the two, and what it has by the model."""

    client: Client
    made: int = 0
    """How many things it has numbered."""
    exact: dict[int, tuple[str, int]] = field(default_factory=dict)
    """What frees it, and its MiB; by its number."""
    asynchronous: set[int] = field(default_factory=set)
    pools: bool = False
    """Whether a pool may keep something."""


class World:
    """Two programs of an allocation, their manager and the GPU."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.free_bytes = stage.machine.gpus()[0].used_bytes
        self.manager = self.new_manager()
        self.programs = [self.new_program() for _ in range(2)]

    def new_manager(self) -> ScriptedManager:
        manager = ScriptedManager(self.stage.directory)
        manager.serve(contended=False)
        return manager

    def new_program(self) -> Program:
        program = Program(self.stage.memory_client().ready())
        assert program.client.do("start") == SUCCESS
        return program

    def exact_mib(self) -> int:
        return sum(mib for program in self.programs for _, mib in program.exact.values())

    def get(self, who: int, kind: str, halves_mib: int) -> None:
        program, mib = self.programs[who], 2 * halves_mib
        make, end = EXACT[kind]
        result = program.client.do(make.format(bytes=mib * MIB, rows=512 * mib))
        if not any(each.pools for each in self.programs):
            assert (result == SUCCESS) == (self.exact_mib() + mib <= CAP_MIB)
        if result == SUCCESS:
            program.exact[program.made] = (end, mib)
            program.made += 1
        else:
            assert result == OUT_OF_MEMORY

    def get_asynchronous(self, who: int, mib: int) -> None:
        program = self.programs[who]
        result = program.client.do(f"asynchronous {mib * MIB}")
        program.pools = True
        if result == SUCCESS:
            program.asynchronous.add(program.made)
            program.made += 1
        else:
            assert result == OUT_OF_MEMORY

    def free(self, who: int, which: int) -> None:
        program = self.programs[who]
        numbers = [*program.exact, *program.asynchronous]
        if not numbers:
            return
        number = numbers[which % len(numbers)]
        if number in program.exact:
            end, _ = program.exact.pop(number)
            assert program.client.do(f"{end} {number}") == SUCCESS
        else:
            program.asynchronous.remove(number)
            assert program.client.do(f"free_async {number}") == SUCCESS

    def sync(self, who: int) -> None:
        program = self.programs[who]
        assert program.client.do("sync") == SUCCESS
        program.pools = bool(program.asynchronous)

    def share(self, who: int, halves_mib: int) -> None:
        owner, guest = self.programs[who], self.programs[1 - who]
        before = owner.made
        self.get(who, "plain", halves_mib)
        if owner.made == before:
            return
        owner.client.tell(f"ipc_export {before}")
        handle = owner.client.line()
        assert owner.client.answer() == [SUCCESS]
        guest.client.tell("ipc_open")
        guest.client.tell(handle)
        assert guest.client.answer() == [SUCCESS]
        self.check()
        assert guest.client.do(f"ipc_close {guest.made}") == SUCCESS
        guest.made += 1

    def stop(self, who: int, kind: str, halves_mib: int) -> None:
        process = self.programs[who].client.process
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        self.get(1 - who, kind, halves_mib)
        process.send_signal(signal.SIGCONT)

    def kill(self, who: int) -> None:
        self.end(self.programs[who])
        self.programs[who] = self.new_program()
        self.check()

    def end(self, program: Program) -> None:
        """It is gone, and the driver lists it no more."""
        program.client.kill()
        self.stage.machine.look()
        gone = [each for each in self.manager.connections if each.pid == program.client.process.pid]
        deadline_s = time.monotonic() + PATIENCE_S
        while not all(each.ended for each in gone):
            assert time.monotonic() < deadline_s, "the manager does not see the end"
        with self.manager.paused():
            for each in gone:
                self.manager.memory.driver_freed(each.number)

    def kill_manager(self) -> None:
        self.manager.die()
        self.manager = self.new_manager()

    def check(self) -> None:
        """The books come to say what there is, and so does each program: what it asks makes it come back to a manager
        that is new. That one knows of it first; until the program has heard so, it counts by itself alone."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not (self.is_told_to_all() and self.right()):
            assert time.monotonic() < deadline_s, f"the books: {self.manager.used_bytes} bytes, {self.exact_mib()} MiB"

    def is_told_to_all(self) -> bool:
        """Whether each program hears how much all of them have left."""
        for program in self.programs:
            program.client.tell("info")
            result, free_bytes, _ = program.client.answer()
            assert result == SUCCESS
            if free_bytes != CAP_MIB * MIB - self.manager.used_bytes:
                return False
        return True

    def right(self) -> bool:
        pids = {each.pid for each in self.manager.connections if each.pages is not None and not each.ended}
        if not pids >= {program.client.process.pid for program in self.programs}:
            # One that is without its manager is held to the cap by itself alone.
            return False
        used_bytes, exact_bytes = self.manager.used_bytes, self.exact_mib() * MIB
        if any(program.pools for program in self.programs):
            return exact_bytes <= used_bytes <= CAP_MIB * MIB
        return used_bytes == exact_bytes

    def finish(self) -> None:
        """One gives all back, the other is killed with what it has."""
        for _ in range(self.programs[0].made):
            self.free(0, 0)
        self.sync(0)
        self.end(self.programs.pop())
        self.check()
        assert self.manager.used_bytes == 0
        self.end(self.programs.pop())
        assert self.stage.machine.gpus()[0].used_bytes == self.free_bytes
        self.manager.die()


def play(programs: Path, steps: list[tuple[object, ...]]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="hook-", dir="/dev/shm"))
    stage = Stage(folder, programs)
    try:
        world = World(stage)
        world.check()
        for name, *arguments in steps:
            getattr(world, str(name))(*arguments)
            world.check()
        world.finish()
    finally:
        stage.end()
        shutil.rmtree(folder)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        most = SOAK if metafunc.config.getoption("soak") else USUAL
        metafunc.parametrize("first", range(0, most, STRETCH))


@pytest.mark.timeout(900)
def test_after_any_sequence_all_memory_is_free_again_to_the_byte(programs: Path, first: int) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    some = settings(max_examples=STRETCH, deadline=None, suppress_health_check=checks)
    seed(first)(some(given(STEPS)(lambda steps: play(programs, steps))))()
