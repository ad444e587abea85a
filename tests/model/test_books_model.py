"""The books of a client: whatever comes late, twice or not at all, they say what the client holds or has asked for and
not heard of; and what they say is never less than what there is, but for what nobody granted."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cuda_hook.gate import GatePages
from sharemgr.node.memory.allowances import Memory
from tests.kit.properties.examples import examples

CAP_BYTES = 10_000
SIZES = st.integers(1, 200) | st.integers(1, CAP_BYTES)
PROCESSES = st.integers(0, 1)


@dataclass
class Session:
    """A connection as both sides see it: what is on its way, in order."""

    client_id: int
    pages: GatePages
    to_manager: deque[Callable[[], None]] = field(default_factory=deque)
    to_client: deque[tuple[int, bool]] = field(default_factory=deque)
    welcomed: bool = False
    """The manager has handled its HELLO."""


@dataclass(eq=False)
class Block:
    """Memory that a process has; ``heard``: a manager granted it, or was told."""

    size: int
    heard: bool


class Process:
    """What the hook keeps (``account.c``): blocks, what the manager of this session has heard of, one open question."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.greeting: Session | None = None
        self.blocks: list[Block] = []
        self.client_ids: list[int] = []
        self.known_bytes = 0
        self.question: tuple[int, int] | None = None

    @property
    def used_bytes(self) -> int:
        return sum(block.size for block in self.blocks)


class Books(RuleBasedStateMachine):
    """Two processes of one allocation, and a manager that handles what it was sent when it pleases."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory("model", CAP_BYTES, ("a",), {})
        self.processes = [Process(), Process()]
        self.last: dict[int, list[int]] = {0: [], 1: []}
        """By process: its clients that are gone, of which the books may still say something."""
        self.numbers = 0
        self.next_id = 0
        self.sessions: list[tuple[int, Session]] = []
        """All that the manager has not seen the end of."""
        for index in (0, 1):
            self.one_greets(index)
            self.the_manager_catches_up()
            self.one_finds_its_welcome(index)

    def post(self, session: Session, act: Callable[[], None]) -> None:
        session.to_manager.append(act)

    @precondition(lambda self: any(process.session is None for process in self.processes))
    @rule(index=PROCESSES)
    def one_comes_back(self, index: int) -> None:
        self.one_greets(index)
        self.one_finds_its_welcome(index)

    def one_greets(self, index: int) -> None:
        process = self.processes[index]
        if process.session is not None or process.greeting is not None:
            return
        pages = GatePages.create(1)
        pages.close_fds()
        session = process.greeting = Session(self.next_id, pages)
        self.next_id += 1
        process.client_ids.append(session.client_id)
        self.sessions.append((index, session))

        def hello() -> None:
            session.welcomed = True
            self.memory.join(session.client_id, pages)
            for dying_id in self.last[index]:
                self.memory.succeed(session.client_id, dying_id)

        self.post(session, hello)

    def one_finds_its_welcome(self, index: int) -> None:
        process = self.processes[index]
        session = process.greeting
        if session is None or not session.welcomed:
            return
        process.session, process.greeting = session, None
        process.known_bytes = used_bytes = process.used_bytes
        blocks = list(process.blocks)

        def declare() -> None:
            self.memory.declare(session.client_id, 0, used_bytes)
            for block in blocks:
                block.heard = True

        if used_bytes:
            self.post(session, declare)

    @rule(index=PROCESSES, size=SIZES)
    def one_asks(self, index: int, size: int) -> None:
        process = self.processes[index]
        session = process.session
        if process.question is not None or session is None:
            return
        if session.pages.take(0, size):
            process.blocks.append(Block(size, True))
            process.known_bytes += size
            return
        self.numbers += 1
        number = self.numbers
        process.question = number, size

        def reserve() -> None:
            self.memory.declared(session.client_id)
            session.to_client.append((number, self.memory.reserve(session.client_id, 0, size).granted))

        self.post(session, reserve)

    @precondition(lambda self: any(process.question is not None for process in self.processes))
    @rule(index=PROCESSES, twice=st.booleans(), driver_gives=st.booleans())
    def one_hears(self, index: int, twice: bool, driver_gives: bool) -> None:
        process = self.processes[index]
        session = process.session
        if session is None or not session.to_client:
            return
        number, granted = session.to_client[0]
        if not twice:
            session.to_client.popleft()
        if process.question is None or process.question[0] != number:
            return
        _, size = process.question
        process.question = None
        if granted and driver_gives:
            process.blocks.append(Block(size, True))
            process.known_bytes += size
        elif granted:
            session.pages.allow(0, size)

    @precondition(lambda self: any(process.question is not None for process in self.processes))
    @rule(index=PROCESSES)
    def one_waits_no_longer(self, index: int) -> None:
        """The answer may be on its way: that of a session which has ended is heard by nobody."""
        process = self.processes[index]
        if process.question is None:
            return
        _, size = process.question
        process.question = None
        self.end(process)
        if process.used_bytes + size <= CAP_BYTES:
            process.blocks.append(Block(size, False))

    @rule(index=PROCESSES)
    def one_loses_its_connection(self, index: int) -> None:
        process = self.processes[index]
        process.question = None
        self.end(process)

    def end(self, process: Process) -> None:
        session = process.session
        if session is None:
            return
        index = self.processes.index(process)
        process.session, process.known_bytes = None, 0

        def end_of_file() -> None:
            self.sessions.remove((index, session))
            if not self.memory.leave(session.client_id):
                return
            self.last[index].append(session.client_id)
            for other, heir in self.sessions:
                if other == index and heir.welcomed:
                    self.memory.succeed(heir.client_id, session.client_id)

        self.post(session, end_of_file)

    @precondition(lambda self: any(process.blocks for process in self.processes))
    @rule(index=PROCESSES, which=st.integers(0, 20))
    def one_frees(self, index: int, which: int) -> None:
        process = self.processes[index]
        if not process.blocks:
            return
        size = process.blocks.pop(which % len(process.blocks)).size
        heard_bytes = min(size, process.known_bytes)
        process.known_bytes -= heard_bytes
        if process.session is not None and heard_bytes:
            process.session.pages.allow(0, heard_bytes)

    @precondition(lambda self: any(session.to_manager for _, session in self.sessions))
    @rule(which=st.integers(0, 5))
    def the_manager_handles_a_record(self, which: int) -> None:
        waiting = [session for _, session in self.sessions if session.to_manager]
        waiting[which % len(waiting)].to_manager.popleft()()

    @rule()
    def the_manager_catches_up(self) -> None:
        while any(session.to_manager for _, session in self.sessions):
            self.the_manager_handles_a_record(0)

    @rule()
    def the_driver_is_asked(self) -> None:
        dying = self.memory.dying()
        for index, process in enumerate(self.processes):
            mine = [client_id for client_id in self.last[index] if client_id in dying]
            for client_id in mine[:-1]:
                self.memory.driver_freed(client_id)
            if mine and process.used_bytes:
                self.memory.driver_says(mine[-1], {"a": process.used_bytes})
            elif mine:
                self.memory.driver_freed(mine[-1])

    @invariant()
    def books_that_have_heard_all_are_exact(self) -> None:
        if any(session.to_manager for _, session in self.sessions):
            return
        for process in self.processes:
            session = process.session
            if session is None:
                continue
            asked = process.question[1] if process.question is not None else 0
            held_bytes = self.memory.client_bytes(session.client_id)
            assert held_bytes in (process.used_bytes, process.used_bytes + asked)
            assert asked == 0 or session.to_client
            if not asked:
                assert held_bytes == process.used_bytes == process.known_bytes

    @invariant()
    def what_a_manager_has_heard_of_stays_on_the_books(self) -> None:
        for process in self.processes:
            heard_bytes = sum(block.size for block in process.blocks if block.heard)
            assert sum(map(self.memory.client_bytes, process.client_ids)) >= heard_bytes

    def teardown(self) -> None:
        """All that is late comes, all come back and say something: then the books are what there is."""
        for _ in range(3):
            for index in (0, 1):
                self.one_greets(index)
                self.one_finds_its_welcome(index)
            self.the_manager_catches_up()
        for index, process in enumerate(self.processes):
            while process.question is not None:
                self.one_hears(index, twice=False, driver_gives=True)
            assert process.session is not None
            self.memory.declared(process.session.client_id)
        assert self.memory.info(0).used_bytes == sum(process.used_bytes for process in self.processes)


TestBooks = Books.TestCase
TestBooks.settings = settings(max_examples=examples(100), stateful_step_count=60, deadline=None)
