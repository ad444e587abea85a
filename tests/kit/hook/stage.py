"""Client programs on a simulated machine, with the hook in front of the driver."""

import os
import selectors
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cuda_hook import wire
from simgpu.create import create
from simgpu.environment import variables
from simgpu.machine import Machine
from simgpu.native import LIBRARIES
from simgpu.paces import Pace
from simgpu.readings import Interval
from tests.kit.hook.manager import PATIENCE_S, ScriptedManager
from tests.kit.programs.compiled import FLAGS, INCLUDES, compiled

ROOT = Path(__file__).parents[3]
HOOK = ROOT / "cuda_hook" / "libedgeshare_cuda.so"
SOURCES = Path(__file__).parent / "programs"

SUCCESS = 0
OUT_OF_MEMORY = 2


def compile_program(target: Path, source: str, *flags: str) -> Path:
    """Compiles one of the programs (or a library, with ``-shared``): a file, or all C files of a folder."""
    place = SOURCES / source
    paths = [str(path) for path in sorted(place.glob("*.c"))] if place.is_dir() else [str(place)]
    made = compiled("program", ["gcc", *FLAGS, *INCLUDES, "-o", "program", *paths, *flags, "-ldl"])
    shutil.copy(made, target)
    return target


LINK_DRIVER = (f"-L{LIBRARIES}", "-l:libcuda.so.1", f"-Wl,-rpath-link,{LIBRARIES}")


class Client:
    """A running ``client`` program: takes commands, gives answers."""

    def __init__(self, argv: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._unread = b""
        self._selector = selectors.DefaultSelector()
        assert self.process.stdout is not None
        self._selector.register(self.process.stdout, selectors.EVENT_READ)

    def ready(self) -> "Client":
        """Waits until it has found the driver."""
        line = self.line()
        assert line == "ready", line
        return self

    def tell(self, command: str) -> None:
        """Gives a command and does not wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self) -> list[int]:
        """The numbers of the next answer, the driver's result first."""
        line = self.line()
        assert line.startswith("= "), line
        return [int(word) for word in line[2:].split()]

    def do(self, command: str) -> int:
        """Gives a command, waits for its end and returns the driver's result."""
        self.tell(command)
        return self.answer()[0]

    def start(self) -> "Client":
        """Initialises the driver and makes a context."""
        assert [self.do("init"), self.do("context")] == [SUCCESS, SUCCESS]
        return self

    def line(self) -> str:
        """The next line of its output; fails when it ends or says nothing."""
        while b"\n" not in self._unread:
            assert self._selector.select(PATIENCE_S), "the client says nothing"
            assert self.process.stdout is not None
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"the client ended: {self.process.wait(PATIENCE_S)} {self.errors()}"
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def idle(self) -> bool:
        """Whether there is no answer to read now."""
        return not self.says_within(0)

    def says_within(self, seconds: float) -> bool:
        """Whether there is an answer within that time."""
        return b"\n" in self._unread or bool(self._selector.select(seconds))

    def answers(self) -> bool:
        """Whether it has answered, or does before long."""
        return self.says_within(0.01)

    def stopped(self) -> bool:
        """Whether it has stopped itself since it was last asked for."""
        pid, status = os.waitpid(self.process.pid, os.WUNTRACED | os.WNOHANG)
        assert pid == 0 or os.WIFSTOPPED(status)
        return pid != 0

    def threads(self) -> int:
        """How many threads it has."""
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def errors(self) -> str:
        """What it wrote to stderr; once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def end(self) -> tuple[int, str]:
        """Lets it end; its exit status and what it wrote to stderr."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        status = self.process.wait(PATIENCE_S)
        return status, self.errors()

    def kill(self) -> None:
        """Ends it at once; also one that waits at a gate for ever."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self._selector.close()


class Stage:
    """A simulated machine of one small GPU, the hook's directory, and the clients on it."""

    def __init__(self, folder: Path, programs: Path, hook: Path = HOOK, pace: Pace | None = None) -> None:
        create(folder / "machine", gpus=1, memory_mib=4096, pace=pace)
        self.machine = Machine(folder / "machine")
        self.directory = folder / "hook"
        self.log = folder / "hook.log"
        self.hook = hook
        self._folder = folder
        self._stands = folder / "stands"
        self._programs = programs
        self._clients: list[Client] = []

    def replace_machine(self, gpus: int, uuids: Sequence[str]) -> None:
        """Puts another machine in the place of the one of a small GPU; before the first client."""
        shutil.rmtree(self._folder / "machine")
        create(self._folder / "machine", gpus=gpus, memory_mib=4096, uuids=uuids)
        self.machine = Machine(self._folder / "machine")

    def environment(self, **extra: str) -> dict[str, str]:
        known = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        hook = {
            "LD_PRELOAD": str(self.hook),
            "EDGESHARE_HOOK_DIR": str(self.directory),
            "EDGESHARE_HOOK_LOG": str(self.log),
        }
        return {**known, **variables(self._folder / "machine", known), **hook, **extra}

    def client(self, door: str = "dlsym", tag: str = "", **environment: str) -> Client:
        """Starts a client that finds the driver through this door."""
        program = self._programs / ("linked" if door == "linked" else "opened")
        variables_ = self.environment(SIMGPU_TAG=tag, **environment)
        self._clients.append(Client([str(program), door], variables_))
        return self._clients[-1]

    def memory_client(self, **environment: str) -> Client:
        """Starts the program that gets memory in every way (``programs/memory/memory.py``)."""
        self._clients.append(
            Client([sys.executable, str(SOURCES / "memory/memory.py")], self.environment(**environment))
        )
        return self._clients[-1]

    def patient_client(self) -> Client:
        """The same, which waits for its manager's answers for however long that takes: by the hook's time only while
        the manager is said to be ``standing`` (``programs/patient.c``)."""
        patient = self._folder / "patient.so"
        if not patient.exists():
            compile_program(patient, "patient.c", "-shared", "-fPIC")
        return self.memory_client(LD_PRELOAD=f"{self.hook} {patient}", EDGESHARE_TEST_STANDS=str(self._stands))

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Meanwhile patient clients take a manager that does not answer for hung."""
        self._stands.touch()
        yield
        self._stands.unlink()

    def executed(self) -> list[Interval]:
        """All that the GPU has run so far, but for functions of the host: the hook queues some to time launches."""
        return [interval for interval in self.machine.log(0)[0] if interval.kind != "host"]

    def holds_until_granted(self, manager: ScriptedManager, client: Client, command: str) -> None:
        """Gives a command that submits: nothing has run before a grant, and all of it has when this returns."""
        client.tell(command)
        manager.hears(wire.Request)
        assert client.idle()
        assert self.executed() == []
        manager.grant_until(client.answers)
        assert client.answer() == [SUCCESS]
        assert client.do("sync") == SUCCESS

    def hook_log(self) -> str:
        """What the hook wrote to its log."""
        return self.log.read_text() if self.log.exists() else ""

    def end(self) -> None:
        for client in self._clients:
            client.kill()
