"""The ledger and the allowance words, through whatever clients do, say and write: nothing is lost, nothing is granted
twice, and a refusal is exact."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cuda_hook.gate import GatePages
from edgeshare.contract.errors import InvalidRequest
from sharemgr.node.memory.allowances import Memory
from tests.kit.properties.examples import examples

CAP_BYTES = 10_000
DEVICES = 2
CLIENTS = st.integers(0, 3)
DEVICE = st.integers(0, DEVICES - 1)
SIZES = st.integers(0, 150) | st.integers(0, CAP_BYTES + 1)
"""As often as not so little that an allowance holds it."""


class Process:
    """What a hooked process knows of itself; its figures are the truth."""

    def __init__(self) -> None:
        self.pages = GatePages.create(1)
        self.pages.close_fds()
        self.used_bytes = [0] * DEVICES
        self.overhead_bytes = [0] * DEVICES


class MemoryOfOneAllocation(RuleBasedStateMachine):
    """Honest clients on both devices, of which any may sleep or die at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory("model", CAP_BYTES, ("a", "b"), {})
        self.living: dict[int, Process] = {}
        self.dying: dict[int, Process] = {}
        self.next_id = 0
        self.excess_bytes = [0] * DEVICES
        """By how much each device was over the cap when the driver was last asked."""

    def process(self, index: int) -> tuple[int, Process]:
        return list(self.living.items())[index % len(self.living)]

    def free_bytes(self, device: int) -> int:
        all_of = [*self.living.values(), *self.dying.values()]
        return CAP_BYTES - sum(each.used_bytes[device] + each.overhead_bytes[device] for each in all_of)

    @precondition(lambda self: len(self.living) < 4)
    @rule()
    def one_joins(self) -> None:
        process = self.living[self.next_id] = Process()
        self.memory.join(self.next_id, process.pages)
        self.next_id += 1

    @precondition(lambda self: self.living)
    @rule(index=CLIENTS, device=DEVICE, size=SIZES, driver_gives=st.booleans())
    def one_allocates(self, index: int, device: int, size: int, driver_gives: bool) -> None:
        self.allocate(index, device, size, driver_gives)

    def allocate(self, index: int, device: int, size: int, driver_gives: bool) -> None:
        client_id, process = self.process(index)
        fits = size <= self.free_bytes(device) or size == 0
        taken = process.pages.take(device, size)
        granted = taken or self.memory.reserve(client_id, device, size).granted
        # Overhead may bring it over the cap: then a process may have again what it freed since the last look.
        assert granted == fits or (taken and size - self.free_bytes(device) <= self.excess_bytes[device])
        if granted and driver_gives:
            process.used_bytes[device] += size
        elif granted:
            process.pages.allow(device, size)

    @precondition(lambda self: self.living)
    @rule(index=CLIENTS, device=DEVICE, spare=st.integers(-1, 1))
    def one_fills_up(self, index: int, device: int, spare: int) -> None:
        self.allocate(index, device, max(0, self.free_bytes(device) + spare), True)

    @precondition(lambda self: self.living)
    @rule(index=CLIENTS, device=DEVICE, part=st.integers(0, 100), by_record=st.booleans())
    def one_frees(self, index: int, device: int, part: int, by_record: bool) -> None:
        client_id, process = self.process(index)
        size = process.used_bytes[device] * part // 100
        process.used_bytes[device] -= size
        if by_record:
            self.memory.freed(client_id, device, size)
        else:
            process.pages.allow(device, size)

    @precondition(lambda self: self.living)
    @rule(index=CLIENTS, device=DEVICE, size=st.integers(0, CAP_BYTES))
    def the_driver_takes_some_and_is_asked(self, index: int, device: int, size: int) -> None:
        client_id, process = self.process(index)
        process.overhead_bytes[device] = size
        self.memory.look()
        used = zip(process.used_bytes, process.overhead_bytes, strict=True)
        self.memory.reconcile(client_id, dict(zip(("a", "b"), map(sum, used), strict=True)))
        self.excess_bytes = [max(0, -self.free_bytes(each)) for each in range(DEVICES)]

    @precondition(lambda self: self.living)
    @rule(index=CLIENTS)
    def one_dies(self, index: int) -> None:
        client_id, process = self.process(index)
        del self.living[client_id]
        if self.memory.leave(client_id):
            self.dying[client_id] = process
        else:
            assert not any(process.used_bytes)

    @precondition(lambda self: self.dying)
    @rule(index=CLIENTS)
    def the_driver_frees(self, index: int) -> None:
        client_id = list(self.dying)[index % len(self.dying)]
        del self.dying[client_id]
        self.memory.driver_freed(client_id)

    @invariant()
    def what_is_told_is_the_truth(self) -> None:
        for device in range(DEVICES):
            info = self.memory.info(device)
            assert info.cap_bytes - info.used_bytes == self.free_bytes(device)
        for client_id, process in self.living.items():
            assert self.memory.client_bytes(client_id) == sum(process.used_bytes) + sum(process.overhead_bytes)
        assert self.memory.dying() == {
            client_id: sum(process.used_bytes) + sum(process.overhead_bytes)
            for client_id, process in self.dying.items()
        }


class HostileWords(RuleBasedStateMachine):
    """A client that writes into its page what it likes, beside an honest one."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory("model", CAP_BYTES, ("a",), {})
        self.hostile, self.honest = Process(), Process()
        self.memory.join(0, self.hostile.pages)
        self.memory.join(1, self.honest.pages)
        self.held_bytes = 0

    @rule(word=st.integers(0, (1 << 64) - 1))
    def it_writes(self, word: int) -> None:
        self.hostile.pages.allow(0, word)

    @rule(size=st.integers(0, CAP_BYTES))
    def it_reserves(self, size: int) -> None:
        before = self.memory.info(0)
        if self.memory.reserve(0, 0, size).granted:
            assert size <= before.free_bytes

    @rule(size=st.integers(0, 2 * CAP_BYTES))
    def it_frees(self, size: int) -> None:
        try:
            self.memory.freed(0, 0, size)
        except InvalidRequest:
            assert size > 0

    @rule(size=st.integers(0, CAP_BYTES))
    def the_honest_one_allocates(self, size: int) -> None:
        free = self.memory.info(0).free_bytes
        granted = self.honest.pages.take(0, size) or self.memory.reserve(1, 0, size).granted
        assert granted == (size <= free)
        if granted:
            self.held_bytes += size

    @rule()
    def the_honest_one_frees_all(self) -> None:
        self.honest.pages.allow(0, self.held_bytes)
        self.held_bytes = 0

    @invariant()
    def nobody_but_the_hostile_one_is_misjudged(self) -> None:
        assert self.memory.client_bytes(1) == self.held_bytes
        assert self.held_bytes <= self.memory.info(0).used_bytes <= CAP_BYTES
        assert self.memory.client_bytes(0) >= 0


TestMemory = MemoryOfOneAllocation.TestCase
TestMemory.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestHostileWords = HostileWords.TestCase
TestHostileWords.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
