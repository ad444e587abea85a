"""Programs with the hook that get memory as they are told, under the cap of an allocation."""

import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeshare.cli.run import hook_library
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from simgpu.create import CONTEXT_OVERHEAD_MIB
from tests.kit.manager.testbed import MIB, Testbed, share
from tests.kit.processes.waiting import PATIENCE_S

PROGRAM = Path(__file__).parents[1] / "hook/programs/memory/memory.py"
SUCCESS, OUT_OF_MEMORY, INVALID_DEVICE = 0, 2, 101
CAP_MIB = 1024


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
        """Kills it."""
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
