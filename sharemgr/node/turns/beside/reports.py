"""What the clients of one device report of their use, held against what its driver says: who is doubted, or whether all
take turns, since nobody knows whose the lie is (share/trust.py, measurement.py)."""

from collections.abc import Collection, Mapping

from sharemgr.node.turns.beside.measurement import Beside
from sharemgr.node.turns.gate import Gate


class Reports:
    """Of one device. A check is each second."""

    __slots__ = ("_beside", "_reported_ns")

    def __init__(self, beside: Beside) -> None:
        """``beside`` is told where turns are to be taken."""
        self._beside = beside
        self._reported_ns = 0  # by all, those that are gone included, since the last check

    def note(self, gate: Gate, gpu_ns: int) -> None:
        """The pages of one say that it used so much."""
        self._reported_ns += gpu_ns
        gate.trust.reported_ns += gpu_ns

    def check(
        self, gates: Collection[Gate], busy_ns: int | None, used_ns: Mapping[Gate, int] | None, now_ns: int
    ) -> list[Gate]:
        """How long the device was busy since the last check, as its driver says, and how much of that the processes of
        each of all ``gates`` used; None: that is not known. Returns who lies."""
        reported_ns, self._reported_ns = self._reported_ns, 0
        pending_ns = 0
        liars = []
        for gate in gates:
            trust = gate.trust
            trust.check(None if used_ns is None else used_ns[gate], not gate.suspect)
            if not gate.suspect:
                pending_ns = max(pending_ns, gate.demand.running_ns)
            elif used_ns is not None:
                reported_ns -= trust.told_ns
                if busy_ns is not None:
                    busy_ns -= trust.used_ns
            if trust.lies and gate.suspect:
                trust.lose(now_ns)
            elif trust.lies:
                liars.append(gate)
            gate.suspect = trust.lost(now_ns)
        fits = self._beside.check(reported_ns, pending_ns, busy_ns, now_ns)
        if not fits:
            believed = [gate for gate in gates if not gate.suspect and gate not in liars]
            liars += [gate for gate in believed if not gate.trust.fits(gate.demand.running_ns)]
        if fits and not liars:
            return []
        if used_ns is not None and liars:
            return liars
        for gate in liars:
            gate.trust.lies = False
        self._beside.lie(now_ns)
        return []
