"""What is simulated: clients that run steps under a manager, with a pace, a seed and faults. Pure.

A case is printed and read as one line of JSON; reading checks all of it, so that whatever stands in a file or on a
command line is either a case or one clear error.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import NS_PER_MS
from tests.kit.virtual.cases.lies import LIES
from tests.kit.virtual.cases.paces import PACES

KINDS = (
    *("launch", "graph", "capture", "drop_graph", "wait", "wait_stream", "query_stream", "record", "wait_event"),
    *("order", "think", "compute", "alloc", "alloc_async", "free", "free_async", "upload", "download", "fill"),
    *("fetch", "take", "pass", "round", "renew_stream", "end", "due", "host"),
)
"""In the order of their numbers in programs/program.h, from 1."""

ANY = 0xFFFFFFFF
"""Of a launch: a kernel drawn by weight. As in programs/program.h."""

KERNELS, STREAMS, OBJECTS, GRAPHS, THREADS = 512, 16, 16, 8, 16
"""How many there may be, as in programs/program.h and client.h."""

Scheduling = Literal["fifo", "timeslice"]
MOVES = (
    *("connect", "send", "answer", "receive", "await_grant", "await_revoke", "hint", "shut", "close"),
    "think",
)
"""In the order of their numbers in programs/attacker.h, from 1."""

CONNECTIONS, PACKETS, PACKET_BYTES = 512, 256, 4096
"""How many there may be, as in programs/attacker.h."""

SECOND_NS = 1_000_000_000

MEASURED_MS = 2000
SUBMISSIONS = 30
"""So many of the longest submissions have room in what is measured."""


class Parsed(BaseModel):
    """What all of these have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Step(Parsed):
    """One step of a thread; what its fields mean stands in programs/program.h."""

    kind: Literal[KINDS]  # type: ignore[valid-type]
    object: Annotated[int, Field(ge=0, le=ANY)] = 0
    stream: Annotated[int, Field(ge=0, lt=STREAMS)] = 0
    count: Annotated[int, Field(ge=0, le=1_000_000)] = 1
    amount: Annotated[int, Field(ge=0, le=1 << 40)] = 0

    @model_validator(mode="after")
    def _objects_exist(self) -> Self:
        most = {"launch": KERNELS, "graph": GRAPHS, "capture": GRAPHS, "drop_graph": GRAPHS}.get(self.kind, OBJECTS)
        if self.object >= most and not (self.kind == "launch" and self.object == ANY):
            raise ValueError(f"{self.kind} has no object {self.object}: there are {most}, numbered from 0")
        if self.kind == "due" and self.amount == 0:
            raise ValueError("a step that is due at each multiple of no time never is")
        if self.kind == "renew_stream" and self.stream == 0:
            raise ValueError("the default stream cannot be renewed")
        return self


class Kernel(Parsed):
    """How long it takes, of which function it is, and how often it is drawn."""

    duration_ns: Annotated[int, Field(ge=0, le=10 * SECOND_NS)]
    function: Annotated[int, Field(ge=0, lt=KERNELS)] = 0
    weight: Annotated[int, Field(ge=0, le=1000)] = 1
    blocks: Annotated[int, Field(ge=1, le=1 << 20)] = 1


class Thread(Parsed):
    """After the last step it goes on at step ``again``; it ends where that is their number."""

    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=1000)]
    again: Annotated[int, Field(ge=0)] = 0


class Program(Parsed):
    """What one client runs."""

    kernels: Annotated[tuple[Kernel, ...], Field(min_length=1, max_length=KERNELS)]
    threads: Annotated[tuple[Thread, ...], Field(min_length=1, max_length=THREADS)]

    @model_validator(mode="after")
    def _kernels_exist(self) -> Self:
        for thread in self.threads:
            for step in thread.steps:
                kernel = {"launch": step.object, "capture": step.amount}.get(step.kind, 0)
                if kernel != ANY and kernel >= len(self.kernels):
                    raise ValueError(f"{step.kind} of kernel {kernel}: the program has {len(self.kernels)}")
                if kernel == ANY and not any(each.weight for each in self.kernels):
                    raise ValueError("no kernel has a weight to be drawn by")
        return self

    @property
    def longest_ns(self) -> int:
        """What the longest submission takes, which nothing can interrupt: a kernel, or a graph."""
        longest_ns = max(kernel.duration_ns for kernel in self.kernels)
        captures = [step for thread in self.threads for step in thread.steps if step.kind == "capture"]
        graphs_ns = [
            step.count * (longest_ns if step.amount == ANY else self.kernels[step.amount].duration_ns)
            for step in captures
        ]
        return max([longest_ns, *graphs_ns])


class Client(Parsed):
    """An allocation, and what runs in it."""

    program: Program
    percent: Annotated[int, Field(ge=1, le=100)]
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    latency: bool = False
    memory_mib: Annotated[int, Field(ge=1, le=8192)] = 512
    delay_ms: Annotated[int, Field(ge=0, le=60_000)] = 0
    """So long after the start it begins."""
    lie: Literal[tuple(LIES)] | None = None  # type: ignore[valid-type]
    """What its pages say instead of what it used."""
    processes: Annotated[int, Field(ge=1, le=8)] = 1
    """How many run the program in this allocation."""

    @model_validator(mode="after")
    def _limit_allows_the_request(self) -> Self:
        if self.limit < self.percent:
            raise ValueError(f"a limit of {self.limit} % is below the request of {self.percent} %")
        return self


class Move(Parsed):
    """One move of a hostile client; what its fields mean stands in programs/attacker.h."""

    kind: Literal[MOVES]  # type: ignore[valid-type]
    connection: Annotated[int, Field(ge=0, lt=CONNECTIONS)] = 0
    packet: Annotated[int, Field(ge=0, lt=PACKETS)] = 0
    count: Annotated[int, Field(ge=0, le=1_000_000)] = 1
    amount: Annotated[int, Field(ge=0, lt=1 << 64)] = 0


class Attacker(Parsed):
    """An allocation with one hostile process in it, which goes on at move ``again`` after the last."""

    moves: Annotated[tuple[Move, ...], Field(min_length=1, max_length=2000)]
    packets: Annotated[
        tuple[Annotated[str, Field(pattern="^([0-9a-f]{2})+$", max_length=2 * PACKET_BYTES)], ...],
        Field(max_length=PACKETS),
    ] = ()
    """In hexadecimal."""
    again: Annotated[int, Field(ge=0)] = 0
    percent: Annotated[int, Field(ge=1, le=100)]
    delay_ms: Annotated[int, Field(ge=0, le=60_000)] = 0
    """So long after the start it begins."""

    @model_validator(mode="after")
    def _packets_exist(self) -> Self:
        for move in self.moves:
            if move.kind in ("send", "answer") and move.packet >= len(self.packets):
                raise ValueError(f"{move.kind} of packet {move.packet}: the attacker has {len(self.packets)}")
        return self


class Fault(Parsed):
    """What happens to a process, at its point ``at_point`` or, where that is 0, ``at_ms`` after the start."""

    action: Literal["kill", "stop"]
    process: str
    """A client's name (``c0``, ``c1``, …): its first process; ``c0.1``: its next one; or ``manager``."""
    at_point: Annotated[int, Field(ge=0)] = 0
    at_ms: Annotated[float, Field(ge=0, le=600_000)] = 0
    for_ms: Annotated[float, Field(ge=0, le=600_000)] = 0
    """How long a stop lasts, or a manager is away."""


class Opening(Parsed):
    """Whose gates are open from a time on, of those that want it: beside each other where they are several."""

    at_ms: Annotated[float, Field(ge=0, le=600_000)]
    open: tuple[str, ...] = ()
    contended: bool = True
    others: bool | None = None
    """Whether they are told that others' gates are open, or what those have queued may still run; None: as it is."""
    tells: bool = False
    """Whether they give their grants back once they have drained."""
    capped: tuple[str, ...] = ()
    """Who keeps at most `cap_us` queued."""
    cap_us: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class Case(Parsed):
    """All that decides what happens."""

    clients: Annotated[tuple[Client, ...], Field(min_length=1, max_length=80)]
    attackers: Annotated[tuple[Attacker, ...], Field(max_length=20)] = ()
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1
    noise: Annotated[int, Field(ge=0, le=2)] = 1
    pace: Literal[tuple(PACES)] = "plain"  # type: ignore[valid-type]
    scheduling: Scheduling = "fifo"
    overlap: bool = False
    """Whether the device's engines overlap."""
    seen: bool = True
    """Whether the driver says how busy the device is; where it does not, the manager takes exclusive turns."""
    named: bool = True
    """Whether it says of each process how much of that was its."""
    unseen: bool = False
    """Whether the device is of a model of which no context was seen, so that something is set aside for the first."""
    hooked: bool = True
    """Whether there are hook and manager; without, each program has what the driver gives it."""
    settle_ms: Annotated[int, Field(ge=0, le=60_000)] = 1000
    measure_ms: Annotated[int, Field(ge=1, le=600_000)] = MEASURED_MS
    step_ms: Annotated[int, Field(ge=1, le=60_000)] = 100
    """The measured time is cut into pieces of this length."""
    intervals: bool = False
    """Whether the report has all that was executed, one by one."""
    atomics: bool = False
    """Whether atomic operations are points: for an instrumented hook."""
    delays_most: Annotated[int, Field(ge=0)] = 1 << 40
    lost_wake: Annotated[int, Field(ge=0)] = 0
    faults: tuple[Fault, ...] = ()
    unpassed_ms: Annotated[int, Field(ge=0, le=600_000)] = 0
    """For so long from the start on the kernel lets the manager pass nobody its pages."""
    max_clients: Annotated[int, Field(ge=1, le=64)] = 64
    """Processes that the manager lets into one allocation at a time."""
    openings: tuple[Opening, ...] = ()
    """Where there are any, nobody decides: in the manager's place is one that does this (opener.py)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        requested = sum(each.percent for each in self.clients) + sum(each.percent for each in self.attackers)
        if requested > 100:
            raise ValueError(f"the clients request {requested} % of one GPU")
        if self.attackers and not self.hooked:
            raise ValueError("there is no manager to attack")
        names = {"manager", *self.processes}
        for fault in self.faults:
            if fault.process not in names:
                raise ValueError(f"there is no process {fault.process!r}: there are {', '.join(sorted(names))}")
        for opening in self.openings:
            if not {*opening.open, *opening.capped} <= {*self.names}:
                raise ValueError(f"there are no other clients than {', '.join(self.names)}")
        several = any(client.processes > 1 for client in self.clients)
        if self.openings and (self.attackers or self.faults or several or not self.hooked):
            raise ValueError("openings go with clients of one process alone")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"c{index}" for index in range(len(self.clients)))

    @property
    def processes(self) -> dict[str, str]:
        """Whose each process is."""
        return {
            f"{name}.{number}" if number else name: name
            for name, client in zip(self.names, self.clients, strict=True)
            for number in range(client.processes)
        }

    @property
    def attacker_names(self) -> tuple[str, ...]:
        return tuple(f"a{index}" for index in range(len(self.attackers)))

    def line(self) -> str:
        """This case as one line; ``read_case`` reads it."""
        return self.model_dump_json(exclude_defaults=True)


def measured_ms(*programs: Program) -> int:
    """For how long these have to be measured: parts of what cannot be interrupted hold only over several."""
    return max(MEASURED_MS, SUBMISSIONS * max(program.longest_ns for program in programs) // NS_PER_MS)


def read_case(text: str) -> Case:
    """Raises InvalidRequest, in one line, for what is no case."""
    try:
        return Case.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole line"
        raise InvalidRequest(f"this is no case: {where}: {first['msg']}") from None
