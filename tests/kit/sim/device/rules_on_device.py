"""What stands between a simulated device and the rules: by turns as today, and by gates.

By turns a real Arbiter grants them. Drains are not foretold here, so that each hand-over costs two messages.
"""

from collections.abc import Sequence

from edgeshare.contract.units import NS_PER_MS, NS_PER_S, NS_PER_US
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.beside.rule import Gates
from sharemgr.node.turns.commands import Command, Contend, Grant, Revoke
from sharemgr.node.turns.gate import Gate, Rule
from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.standing import Standing
from tests.kit.sim.device.simulated_device import NEVER_NS, State, Tenant

LOOK, REQUEST, RELEASE = range(3)
HAND_OVER_NS = 30 * NS_PER_US
"""Two messages and a wake."""
LONE_QUEUE_NS = 5 * NS_PER_MS
"""GPU time that a program may keep queued while it is alone."""
SEEN_EACH_NS = NS_PER_S
"""How often one asks the driver how busy the device was; it keeps no shorter means."""


class ByTurns:
    """Exclusive turns, charged by held time."""

    def __init__(self, tenants: Sequence[Tenant], now_ns: int = 0, switch_ns: int = 0) -> None:
        self._settings = Settings()
        self._arbiter = Arbiter(self._settings)
        self._numbers = [0] * len(tenants)
        self._reported_ns = [0] * len(tenants)
        for index, tenant in enumerate(tenants):
            self._arbiter.add(str(index), tenant.share, now_ns)
            self._arbiter.join(str(index), 1, now_ns)
            self._arbiter.hand_over(str(index), switch_ns + HAND_OVER_NS)

    def happened(self, event: int, index: int, now_ns: int, device: State) -> int:
        """Tells the arbiter."""
        name, page = str(index), device.pages[index]
        if event == REQUEST:
            commands = self._arbiter.request(name, 1, now_ns)
        elif event == RELEASE:
            gpu_ns = page.gpu_ns - self._reported_ns[index]
            commands = self._arbiter.release(name, 1, self._numbers[index], gpu_ns, page.waits > 0, now_ns)
        else:
            commands = self._arbiter.tick(now_ns)
        for command in commands:
            self._perform(command, device)
        deadline_ns = self._arbiter.deadline_ns()
        return NEVER_NS if deadline_ns is None else deadline_ns

    def _perform(self, command: Command, device: State) -> None:
        index = int(command.allocation_id)
        gate = device.gates[index]
        match command:
            case Grant(_, number, contended):
                self._numbers[index] = number
                self._reported_ns[index] = device.pages[index].gpu_ns
                gate.open = gate.tells = 1
                gate.cap_ns = self._settings.queue_cap_ns if contended else LONE_QUEUE_NS
            case Contend(_, _, contended):
                gate.cap_ns = self._settings.queue_cap_ns if contended else LONE_QUEUE_NS
            case Revoke():
                gate.open = 0


class ByGates:
    """Gates as the rule opens them, and turns where it says so."""

    def __init__(
        self,
        tenants: Sequence[Tenant],
        rule: Rule | None = None,
        *,
        switch_ns: int = 0,
        sees_device: bool = True,
        sees_programs: bool = False,
    ) -> None:
        """``sees_device``: the driver says how busy it was; ``sees_programs``: and by whom."""
        self.gates = Gates(Settings(), rule or Rule(), 0)
        self.gates.switch_ns = switch_ns
        self._tenants = tenants
        self._sees_device, self._sees_programs = sees_device, sees_programs
        self._read = [(0, 0)] * len(tenants)
        self._look_ns = self._seen_ns = 0
        self._seen_busy_ns = [0] * (len(tenants) + 1)
        self._turns: ByTurns | None = None
        self._turns_ns = NEVER_NS
        for tenant in tenants:
            self.gates.add(Gate(Standing(tenant.share, Settings(), 0), Settings()))

    def happened(self, event: int, index: int, now_ns: int, device: State) -> int:
        """Reads all pages, has the rule decide, and does what it says."""
        self._read_pages(now_ns, device)
        self.gates.settle(now_ns)
        whole = now_ns >= self._look_ns
        self.gates.look(now_ns, whole)
        if whole:
            self._look_ns = self.gates.look_ns(now_ns)
        if self.gates.in_turns:
            return min(self._look_ns, self._take_turns(event, index, now_ns, device))
        self._turns = None
        device.write_gates([field for gate in self.gates.gates for field in (gate.open, gate.cap_ns, gate.tells)])
        return self._look_ns

    def _read_pages(self, now_ns: int, device: State) -> None:
        read = []
        for gate, before, page, told in zip(
            self.gates.gates, self._read, device.read_pages(), device.read_gates(), strict=True
        ):
            gpu_ns, undrained_ns, idle_ns, waits, queued = page
            gate.demand.read(
                gpu_ns - before[0], idle_ns - before[1], undrained_ns, waits > 0, queued > 0, now_ns=now_ns
            )
            gate.open = told[0] > 0
            read.append((gpu_ns, idle_ns))
        self._read = read
        if self._sees_device and now_ns >= self._seen_ns + SEEN_EACH_NS:
            self._see(list(device.busy_ns), now_ns)

    def _see(self, busy_ns: list[int], now_ns: int) -> None:
        *used_ns, all_ns = [now - before for now, before in zip(busy_ns, self._seen_busy_ns, strict=True)]
        self._seen_ns, self._seen_busy_ns = now_ns, busy_ns
        gates = self.gates.gates
        used = dict(zip(gates, used_ns, strict=True)) if self._sees_programs else None
        for gate in self.gates.reports.check(gates, all_ns, used, now_ns):
            self.gates.doubt(gate, now_ns)

    def _take_turns(self, event: int, index: int, now_ns: int, device: State) -> int:
        if self._turns is None:
            self._turns = ByTurns(self._tenants, now_ns, self.gates.switch_ns)
            for told in device.gates:
                told.open, told.tells = 0, 1
            for waiting, page in enumerate(device.pages):
                if page.waits:
                    self._turns_ns = self._turns.happened(REQUEST, waiting, now_ns, device)
        elif event != LOOK or now_ns >= self._turns_ns:
            self._turns_ns = self._turns.happened(event, index, now_ns, device)
        return self._turns_ns
