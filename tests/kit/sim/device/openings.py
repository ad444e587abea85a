"""A device on which several programs are let in at once, and its arbiter, step by step."""

from dataclasses import dataclass

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import Account, State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Command, Grant, Revoke
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()
STEP_NS = MS // 4
NEVER_NS = 3600 * S


@dataclass
class Program:
    """One client, as its page and its records show it."""

    part: float
    """Of the time that its gate is open: so much it uses. 1: it never pauses."""
    drain_ns: int
    works: bool = True
    number: int = 0
    owes: int = 0
    waits: bool = False
    drains_at_ns: int = 0
    kernel_ns: int = 0
    """If its kernels are long: what runs of one, and is in no counter yet, ends after so long."""
    running_ns: int = 0
    undrained_ns: int = 0
    unsaid_ns: int = 0  # GPU time since it gave back a grant
    used_ns: int = 0

    @property
    def runs(self) -> bool:
        """Whether a kernel of it runs, which nothing interrupts; one that never ends waits for something else."""
        return self.running_ns > 0 and self.kernel_ns < NEVER_NS


class Device:
    """A device on which programs run, and its arbiter; each allocation has one client, which keeps to the protocol."""

    def __init__(self, **shares: Share | int) -> None:
        self.arbiter = Arbiter(SETTINGS)
        self.now_ns = 0
        self.programs: dict[str, Program] = {}
        self.said: list[Command] = []
        self.looked_ns: list[int] = []
        self.watched = True
        self.seen_ns = self.busy_ns = 0
        for name, share in shares.items():
            self.arbiter.add(name, share if isinstance(share, Share) else Share(share, 100), 0)
            self.arbiter.join(name, 1, 0, beside=True)
        self.arbiter.see(0, 0)

    def start(self, name: str, part: float, drain_ns: int = 500 * US) -> None:
        """The program has work, and waits at its gate."""
        self.programs[name] = Program(part, drain_ns)
        self.ask(name)

    def ask(self, name: str) -> None:
        program = self.programs[name]
        program.works = program.waits = True
        self.read()
        self.do(self.arbiter.request(name, 1, self.now_ns))

    def stop(self, name: str) -> None:
        """It has no work any more, once its launch has passed its gate, and gives back its grant."""
        while self.programs[name].waits:
            self.step()
        self.programs[name].works = False
        self.release(name)

    def release(self, name: str) -> None:
        program = self.programs[name]
        number, program.owes, program.number = program.number or program.owes, 0, 0
        program.waits, program.undrained_ns = program.works, 0
        gpu_ns, program.unsaid_ns = program.unsaid_ns, 0
        self.read()
        self.do(self.arbiter.release(name, 1, number, gpu_ns, program.works, self.now_ns))

    def read(self, gpu_ns: dict[str, int] | None = None, elapsed_ns: int = 0) -> None:
        for name, program in self.programs.items():
            used_ns = (gpu_ns or {}).get(name, 0)
            program.undrained_ns += used_ns
            queued = program.owes > 0 and program.works and (program.part == 1 or not program.number)
            idle_ns = 0 if queued or program.waits else elapsed_ns - used_ns
            undrained_ns = program.undrained_ns if queued else 0
            if self.arbiter.rests(name):
                assert (used_ns, program.waits, queued) == (0, True, False)
                continue
            self.arbiter.read(
                name,
                Use(
                    used_ns,
                    idle_ns,
                    undrained_ns,
                    program.waits,
                    queued,
                    program.running_ns if queued else 0,
                    program.unsaid_ns,
                ),
                self.now_ns,
            )
            if self.arbiter.beside:
                # It has been charged with it.
                program.unsaid_ns = 0

    def do(self, commands: list[Command]) -> None:
        self.said += commands
        for command in commands:
            program = self.programs[command.allocation_id]
            match command:
                case Grant(_, number):
                    # What it still owed of a drain that was given up is forgiven.
                    program.owes = program.owes if program.number else number
                    program.number, program.waits = number, False
                case Revoke():
                    program.number = 0
                    busy = program.part == 1 and program.works
                    program.drains_at_ns = self.now_ns + (program.drain_ns if busy else 0)

    def run(self, for_ns: int) -> list[Command]:
        """Time passes; what was said meanwhile."""
        self.said = []
        until_ns = self.now_ns + for_ns
        while self.now_ns < until_ns:
            self.step()
        return self.said

    def step(self) -> None:
        self.now_ns += STEP_NS
        free_ns = STEP_NS
        gpu_ns = dict[str, int]()
        for name, program in sorted(self.programs.items(), key=lambda item: (not item[1].runs, item[1].part)):
            draining = program.owes and not program.number and program.drain_ns < NEVER_NS
            if program.works and (program.number or draining):
                used_ns = min(free_ns, int(STEP_NS * program.part))
                if program.kernel_ns:
                    used_ns = min(used_ns, program.kernel_ns - program.running_ns)
                free_ns -= used_ns
                if program.kernel_ns:
                    program.running_ns += used_ns
                    used_ns = program.kernel_ns if program.running_ns == program.kernel_ns else 0
                    program.running_ns -= used_ns
                gpu_ns[name] = used_ns
                program.unsaid_ns += used_ns
                program.used_ns += used_ns
        self.busy_ns += STEP_NS - free_ns
        self.read(gpu_ns, STEP_NS)
        deadline_ns = self.arbiter.deadline_ns()
        if deadline_ns is not None and deadline_ns <= self.now_ns:
            self.looked_ns.append(self.now_ns)
            self.do(self.arbiter.tick(self.now_ns))
        else:
            self.arbiter.account(next(iter(self.programs)), self.now_ns)
        if self.watched and self.now_ns >= self.seen_ns + S:
            busy_ns, self.busy_ns, self.seen_ns = self.busy_ns, 0, self.now_ns
            self.do(self.arbiter.see(busy_ns, self.now_ns))
        for name, program in self.programs.items():
            if program.owes and not program.number and self.now_ns >= program.drains_at_ns and not program.running_ns:
                self.release(name)

    def an_old_one_comes(self) -> None:
        """A client of version 1, which cannot be let in beside others."""
        self.arbiter.add("old", Share(5, 100), self.now_ns)
        self.read()
        self.do(self.arbiter.join("old", 1, self.now_ns, beside=False))

    def run_until_turns(self) -> None:
        """All drain first."""
        while self.arbiter.beside:
            self.step()

    def run_until_beside(self) -> None:
        for _ in range(4 * 2000):
            if self.arbiter.beside:
                return
            self.step()
        raise AssertionError("it is turns still")

    def account(self, name: str) -> Account:
        self.read()
        return self.arbiter.account(name, self.now_ns)

    def accounts(self) -> dict[str, State]:
        return {name: self.account(name).state for name in self.programs}


def one_light(light: int = 40, **others: int) -> Device:
    """One that uses a fifth of the device and is guaranteed more, in beside others that never pause."""
    device = Device(light=light, **others)
    device.start("light", 0.2)
    for name in others:
        device.start(name, 1)
    device.run_until_beside()
    device.run(S)
    return device


def one_in(device: Device) -> tuple[str, str]:
    """Which of the two that never pause is in, as soon as one is; and the other."""
    while True:
        for name, other in (("one", "two"), ("two", "one")):
            if device.programs[name].number:
                return name, other
        device.step()
