"""Whether one device takes exclusive turns or lets several in beside each other, as pays; and the way from one to the
other: nobody holds a turn, and nobody is in, while it is gone."""

from collections.abc import Collection, Mapping

from edgeshare.contract.units import NS_PER_S
from sharemgr.node.turns.beside.openings import Openings
from sharemgr.node.turns.beside.rule import Gates
from sharemgr.node.turns.commands import Accuse, Command, Numbers
from sharemgr.node.turns.contender import Contender
from sharemgr.node.turns.gate import Gate, Rule
from sharemgr.node.turns.grants import Grants
from sharemgr.node.turns.hand_overs import HandOvers
from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.slices.ends import Ends
from sharemgr.node.turns.slices.slices import Slices

SEEN_NS = 4 * NS_PER_S
"""For so long one goes by the driver's last word on how busy the device was; it is asked each second."""


LEAST_TURNS_NS = NS_PER_S // 10
"""So long it is turns at least: twenty slices. To go to them and back costs as much as a few hand-overs."""


class Mode:
    """The two kinds of grants of one device, and which of them it has now."""

    def __init__(self, settings: Settings, ends: Ends, rule: Rule, hand_overs: HandOvers) -> None:
        numbers = Numbers()
        self._settings = settings
        self.slices = Slices(settings, ends, numbers, hand_overs)
        self.gates = Gates(settings, rule, 0)
        self.openings = Openings(settings, self.gates, numbers, hand_overs)
        self.grants: Grants = self.slices
        """The kind that it has now."""
        self.beside = False
        """Whether several are let in at once."""
        self.alone_clients = 0
        """How many clients cannot be let in beside others."""
        self._turns_until_ns = 0  # it is turns until then at least
        self._watched = False  # there was a client when one saw how busy the device was, at a time that is known
        self._may_until_ns = 0  # until then one knows enough of the device to let several in

    def see(
        self, contenders: Mapping[str, Contender], busy_ns: int | None, used_ns: Mapping[str, int] | None, now_ns: int
    ) -> list[Command]:
        """How long the device was busy since this was last called, as its driver says, and what of that the processes
        of each used; None: that is not known, nor when pages were read, so that the next time tells nothing either.
        While nobody was there, it was others' work, which nobody is to be blamed for."""
        known = busy_ns is not None
        watched = known and self._watched
        self._watched = known and any(each.clients for each in contenders.values())
        if known:
            self._may_until_ns = now_ns + SEEN_NS
        gates = {each.gate: each for each in contenders.values()}
        used: dict[Gate, int] | None = None
        if used_ns is not None:
            used = {g: used_ns.get(each.id, 0) if watched else g.trust.reported_ns for g, each in gates.items()}
        commands: list[Command] = []
        for gate in self.gates.reports.check(gates, busy_ns if watched else None, used, now_ns):
            if not gate.trust.lies:
                # What no hook ever says is said of it already.
                commands.append(Accuse(gates[gate].id, gate.trust.told_ns, gate.trust.used_ns))
            self.gates.doubt(gate, now_ns)
        return commands

    def report(self, gate: Gate, lies: bool, now_ns: int) -> None:
        """The pages of one were read; whether they say what no hook ever does."""
        gate.trust.lies = gate.trust.lies or lies
        if not self.beside:
            self.gates.report(gate, now_ns)

    def take(self, contenders: Collection[Contender], now_ns: int) -> list[Command]:
        """Takes turns, or lets several in, as pays; and returns what is to be done."""
        if self.beside:
            if self.openings.closing or not self.openings.pays or not self._may_share(now_ns):
                drained = self.openings.close_all()
                return self._take_turns(contenders, now_ns) if drained else self.openings.give_commands()
        elif self.gates.in_turns:
            self.gates.rest(now_ns)
        elif self._shares(contenders, now_ns):
            return self._let_in(contenders, now_ns)
        return self.grants.take()

    def _shares(self, contenders: Collection[Contender], now_ns: int) -> bool:
        """Whether there is one that leaves gaps, and another that has work."""
        working, gaps = 0, False
        for contender in contenders:
            if contender.active:
                working += 1
                gaps = gaps or (not contender.gate.suspect and contender.gate.demand.seen_to_leave_gaps)
        return working > 1 and gaps and now_ns >= self._turns_until_ns and self._may_share(now_ns)

    def _may_share(self, now_ns: int) -> bool:
        """Whether one would see a lie, and each client can be let in beside others."""
        return not self._settings.exclusive and now_ns < self._may_until_ns and not self.alone_clients

    def _let_in(self, contenders: Collection[Contender], now_ns: int) -> list[Command]:
        longest_ns = self.slices.end(contenders, now_ns)
        commands = self.slices.give_commands()
        self.openings.begin(contenders, longest_ns, now_ns)
        self.grants, self.beside = self.openings, True
        return commands + self.grants.take()

    def _take_turns(self, contenders: Collection[Contender], now_ns: int) -> list[Command]:
        self.openings.end()
        self.gates.end(now_ns)
        commands = self.openings.give_commands()
        self.slices.begin(contenders, self.gates.longest_ns, now_ns)
        self.grants, self.beside = self.slices, False
        self._turns_until_ns = now_ns + LEAST_TURNS_NS
        return commands + self.grants.take()
