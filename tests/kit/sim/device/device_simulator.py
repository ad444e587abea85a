"""A device that runs one kernel after the other, programs that submit to it, and a real Arbiter between them.

Discrete events on integer ns. A message between a client and the arbiter takes `MESSAGE_NS`, so that a hand-over costs
two of them; the arbiter itself takes no time. What a program executed is known to the simulation alone and is what the
tests judge by.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from edgeshare.contract.units import NS_PER_S
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Begin, Command, Contend, Grant, Revoke
from sharemgr.node.turns.settings import Settings, Share
from tests.kit.sim.device.programs import BUCKET_NS, MESSAGE_NS, Program


@dataclass
class Simulation:
    """Programs on one device, from time 0 on."""

    settings: Settings = field(default_factory=Settings)
    seed: int = 1

    def __post_init__(self) -> None:
        self.arbiter = Arbiter(self.settings)
        self.now_ns = 0
        self.busy_until_ns = 0
        self.programs: dict[str, list[Program]] = {}
        self.shares: dict[str, Share] = {}
        self.commands = 0
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._orders = count()
        self._timer_ns: int | None = None

    def add(self, allocation_id: str, request_percent: int, limit_percent: int = 100, latency: bool = False) -> None:
        """Adds an allocation."""
        share = Share(request_percent, limit_percent, latency)
        self.shares[allocation_id] = share
        self.programs[allocation_id] = []
        self.perform(self.arbiter.add(allocation_id, share, self.now_ns), self.now_ns)

    def start(self, program: Program) -> None:
        """Joins a program and lets it begin."""
        self.programs[program.allocation_id].append(program)
        self.perform(self.arbiter.join(program.allocation_id, program.client_id, self.now_ns), self.now_ns)
        program.begin(self.now_ns)

    def kill(self, program: Program) -> None:
        """The program is gone, and what it had running with it."""
        program.dead = True
        self.programs[program.allocation_id].remove(program)
        commands = self.arbiter.gone(program.allocation_id, program.client_id, self.now_ns)
        self.perform(commands, self.now_ns)

    def at(self, at_ns: int, event: Callable[[int], None]) -> None:
        """Lets something happen."""
        heappush(self._events, (at_ns, next(self._orders), event))

    def run(self, until_ns: int) -> None:
        """Lets time pass."""
        events = self._events
        while events and events[0][0] <= until_ns:
            at_ns, _, event = heappop(events)
            self.now_ns = at_ns
            event(at_ns)
        self.now_ns = until_ns

    def perform(self, commands: list[Command], now_ns: int) -> None:
        """Does what the arbiter says, and sees to it that it is called when it wants to be."""
        free_at_ns = self.arbiter.device_free_ns() if commands else 0
        for command in commands:
            self.commands += 1
            for program in self.programs[command.allocation_id]:
                self._tell(program, command, now_ns + MESSAGE_NS, free_at_ns)
        deadline_ns = self.arbiter.deadline_ns()
        if deadline_ns is not None and (self._timer_ns is None or deadline_ns < self._timer_ns):
            self._timer_ns = deadline_ns
            self.at(max(deadline_ns, now_ns), self._tick)

    def _tell(self, program: Program, command: Command, at_ns: int, free_at_ns: int) -> None:
        def begin(now_ns: int, number: int) -> None:
            if program.number == number and not program.begun and not program.dead:
                program.begun = True
                program.opened(now_ns)

        def told(now_ns: int) -> None:
            if program.dead:
                return
            match command:
                case Grant(_, number, contended):
                    if not program.number:
                        program.begun = False
                    program.number, program.contended = number, contended
                    self.at(max(now_ns, free_at_ns), lambda then_ns: begin(then_ns, number))
                case Begin(_, number):
                    self.at(max(now_ns, free_at_ns), lambda then_ns: begin(then_ns, number))
                case Contend(_, _, contended):
                    program.contended = contended
                case Revoke():
                    number, program.number = program.number, 0
                    if number and program.begun:
                        program.closed(now_ns, number)
                    elif number:
                        program.release(now_ns, number, follows=True)

        self.at(at_ns, told)

    def _tick(self, now_ns: int) -> None:
        if self._timer_ns is not None and now_ns >= self._timer_ns:
            self._timer_ns = None
            commands = self.arbiter.tick(now_ns)
            deadline_ns = self.arbiter.deadline_ns()
            assert deadline_ns is None or deadline_ns > now_ns, "a tick must do what is due"
            self.perform(commands, now_ns)

    # What came of it.

    def executed_ns(self, allocation_id: str, begin_ns: int, end_ns: int) -> int:
        """GPU time within an interval, both ends at whole buckets."""
        first, last = begin_ns // BUCKET_NS, end_ns // BUCKET_NS
        return sum(sum(program.buckets[first:last]) for program in self.programs[allocation_id])

    def worst_error_percent(
        self, expected: dict[str, float], *, of_wall: bool = False, begin_ns: int = 2 * NS_PER_S
    ) -> float:
        """The largest difference, in points, between an expected share and the executed one, over every 10 s from
        begin_ns to now, sliding by a bucket. Shares are of what all executed, or of wall time."""
        window = 10 * NS_PER_S // BUCKET_NS
        first, last = begin_ns // BUCKET_NS, self.now_ns // BUCKET_NS
        rows: dict[str, list[int]] = {}
        for allocation_id, programs in self.programs.items():
            sums = [0]
            for bucket in range(last):
                executed_ns = sum(p.buckets[bucket] if bucket < len(p.buckets) else 0 for p in programs)
                sums.append(sums[-1] + executed_ns)
            rows[allocation_id] = sums
        worst = 0.0
        for begin in range(first, last - window + 1):
            got = {name: sums[begin + window] - sums[begin] for name, sums in rows.items()}
            whole = window * BUCKET_NS if of_wall else sum(got.values())
            for name, share_percent in expected.items():
                worst = max(worst, abs(100 * got[name] / whole - share_percent))
        return worst

    def busy_percent(self, begin_ns: int = 2 * NS_PER_S) -> float:
        """The part of the time since begin_ns that the device was busy."""
        total_ns = sum(self.executed_ns(name, begin_ns, self.now_ns) for name in self.programs)
        return 100 * total_ns / (self.now_ns - begin_ns)
