"""Two programs that get and give back memory in every way, beside a model of what they have."""

import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from tests.kit.hook.connection import hung_up
from tests.kit.hook.manager import CAP_MIB, MIB, PATIENCE_S, ScriptedManager
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Client, Stage

EXACT = {
    "plain": ("plain {bytes}", "free"),
    "managed": ("managed {bytes}", "free"),
    "array": ("array 512 {rows}", "free_array"),
    "mipmap": ("mipmap 512 {rows} 1", "free_mipmap"),
    "chunk": ("chunk {bytes} 1 0", "release"),
    "external": ("external {bytes}", "free_external"),
}
"""What counts with its size, for an even number of MiB, and what frees it."""

OF_CONTEXTS = ("plain", "managed", "array", "mipmap")
"""Those that end with their context."""

HEAP, USUAL_HEAP_MIB = 2, 8
"""CU_LIMIT_MALLOC_HEAP_SIZE, and what a context has of it by itself, which counts as a part of the context."""


def chosen(numbers: Collection[int], which: int) -> int:
    """One of them, whatever number is asked for."""
    return [*numbers][which % len(numbers)]


@dataclass
class Program:
    """One of the two, and what it has by the model."""

    client: Client
    made: int = 0
    """How many things it has numbered."""
    exact: dict[int, tuple[str, int]] = field(default_factory=dict)
    """What frees it, and its MiB; by its number."""
    asynchronous: set[int] = field(default_factory=set)
    keeps_mib: dict[int, int] = field(default_factory=dict)
    """So much its own pools keep at most; by their numbers."""
    graphs: list[int] = field(default_factory=list)
    heap_mib: int = 0
    """More than a context has by itself."""
    pools: bool = False
    """Whether a pool may keep something, or the driver for graphs."""
    launched: bool = False
    """Whether a graph was, since what is kept for them was given back."""

    def waited(self) -> None:
        """All that it queued is done."""
        self.pools = self.launched or bool(self.asynchronous) or any(self.keeps_mib.values())


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
        program = Program(self.stage.patient_client().ready())
        assert program.client.do("start") == SUCCESS
        return program

    def exact_mib(self) -> int:
        return sum(mib for program in self.programs for _, mib in (*program.exact.values(), ("", program.heap_mib)))

    def is_exact(self) -> bool:
        return not any(each.pools for each in self.programs)

    def get(self, who: int, kind: str, halves_mib: int) -> None:
        program, mib = self.programs[who], 2 * halves_mib
        make, end = EXACT[kind]
        result = program.client.do(make.format(bytes=mib * MIB, rows=512 * mib))
        if self.is_exact():
            assert (result == SUCCESS) == (self.exact_mib() + mib <= CAP_MIB)
        if result == SUCCESS:
            program.exact[program.made] = (end, mib)
            program.made += 1
        else:
            assert result == OUT_OF_MEMORY

    def get_asynchronous(self, who: int, mib: int) -> None:
        self.take(self.programs[who], f"asynchronous {mib * MIB}")

    def take(self, program: Program, command: str) -> None:
        """Of what pools keep, where that is enough."""
        result = program.client.do(command)
        program.pools = True
        if result == SUCCESS:
            program.asynchronous.add(program.made)
            program.made += 1
        else:
            assert result == OUT_OF_MEMORY

    def make_pool(self, who: int, keeps_mib: int) -> None:
        program = self.programs[who]
        assert program.client.do(f"pool {keeps_mib * MIB}") == SUCCESS
        program.keeps_mib[program.made] = keeps_mib
        program.made += 1

    def get_from_pool(self, who: int, which: int, mib: int) -> None:
        program = self.programs[who]
        if program.keeps_mib:
            self.take(program, f"from_pool {chosen(program.keeps_mib, which)} {mib * MIB}")

    def end_pool(self, who: int, which: int) -> None:
        """What is in use of it counts until it is freed."""
        program = self.programs[who]
        if program.keeps_mib:
            number = chosen(program.keeps_mib, which)
            del program.keeps_mib[number]
            assert program.client.do(f"end_pool {number}") == SUCCESS

    def make_graph(self, who: int, how: str, mib: int) -> None:
        """One that allocates and frees so much as it runs."""
        program = self.programs[who]
        assert program.client.do(f"{how} {mib * MIB}") == SUCCESS
        program.graphs.append(program.made)
        program.made += 1

    def launch_graph(self, who: int, which: int) -> None:
        program = self.programs[who]
        if program.graphs:
            program.pools = program.launched = True
            assert program.client.do(f"launch {chosen(program.graphs, which)}") in (SUCCESS, OUT_OF_MEMORY)

    def trim_graphs(self, who: int) -> None:
        program = self.programs[who]
        self.sync(who)
        assert program.client.do("trim_graphs") == SUCCESS
        program.launched = False
        program.waited()

    def set_heap(self, who: int, mib: int) -> None:
        program = self.programs[who]
        more_mib = mib - program.heap_mib
        result = program.client.do(f"limit {HEAP} {(USUAL_HEAP_MIB + mib) * MIB}")
        if self.is_exact():
            assert (result == SUCCESS) == (more_mib <= 0 or self.exact_mib() + more_mib <= CAP_MIB)
        if result == SUCCESS:
            program.heap_mib = mib
        else:
            assert result == OUT_OF_MEMORY

    def use_context(self, who: int, kind: str, halves_mib: int, heap_mib: int) -> None:
        """One more, with something in it that ends with it."""
        program = self.programs[who]
        assert program.client.do("create 0") == SUCCESS
        before, outer_mib, context = dict(program.exact), program.heap_mib, program.made
        program.made += 1
        self.get(who, kind, halves_mib)
        self.check()
        program.heap_mib = 0
        outside_mib = self.exact_mib() + outer_mib
        result = program.client.do(f"limit {HEAP} {(USUAL_HEAP_MIB + heap_mib) * MIB}")
        if self.is_exact():
            assert (result == SUCCESS) == (outside_mib + heap_mib <= CAP_MIB)
        program.heap_mib = outer_mib + (heap_mib if result == SUCCESS else 0)
        self.check()
        assert program.client.do(f"destroy {context}") == SUCCESS
        program.exact, program.heap_mib = before, outer_mib

    def free(self, who: int, which: int) -> None:
        program = self.programs[who]
        numbers = [*program.exact, *program.asynchronous]
        if not numbers:
            return
        number = chosen(numbers, which)
        if number in program.exact:
            end, _ = program.exact.pop(number)
            assert program.client.do(f"{end} {number}") == SUCCESS
        else:
            program.asynchronous.remove(number)
            assert program.client.do(f"free_async {number}") == SUCCESS

    def sync(self, who: int) -> None:
        program = self.programs[who]
        assert program.client.do("sync") == SUCCESS
        program.waited()

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

    def stop_manager(self, who: int, kind: str, halves_mib: int, seldom: int) -> None:
        """It stands still for longer than it is waited for, and goes on: what was got meanwhile is on its books."""
        mib = 2 * halves_mib
        if seldom or not self.is_exact() or self.exact_mib() + mib > CAP_MIB:
            return
        with self.manager.paused(), self.stage.standing():
            program = self.programs[who]
            make, end = EXACT[kind]
            assert program.client.do(make.format(bytes=mib * MIB, rows=512 * mib)) == SUCCESS
            program.exact[program.made] = (end, mib)
            program.made += 1

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
        joined = [each for each in self.manager.connections if each.pages is not None and not each.ended]
        # The manager may come late to the end of a session that its client has ended.
        pids = {each.pid for each in joined if not hung_up(each.socket)}
        if not pids >= {program.client.process.pid for program in self.programs}:
            # One that is without its manager is held to the cap by itself alone.
            return False
        used_bytes, exact_bytes = self.manager.used_bytes, self.exact_mib() * MIB
        if not self.is_exact():
            return exact_bytes <= used_bytes <= CAP_MIB * MIB
        return used_bytes == exact_bytes

    def finish(self) -> None:
        """One gives all back, the other is killed with what it has."""
        for _ in range(self.programs[0].made):
            self.free(0, 0)
            self.end_pool(0, 0)
        self.set_heap(0, 0)
        self.trim_graphs(0)
        assert not self.programs[0].pools
        self.end(self.programs.pop())
        self.check()
        assert self.manager.used_bytes == 0
        self.end(self.programs.pop())
        assert self.stage.machine.gpus()[0].used_bytes == self.free_bytes
        self.manager.die()
