"""Which gates of one device are open: the rule for programs that think, its states, and why it holds.

Exclusive turns (policy.py) are charged by held time: who leaves the device between pieces of work is charged for its
gaps, or waits for whoever was let in meanwhile. Here those who leave gaps are left alone while they use no more than
their guarantee, and all are charged by GPU time. r: request, as a fraction; L: slice; Q: cap on queued work.

    cost      GPU time by the learned cost of each function, from the pages of the clients; where all costs add up to
              more than the time that went by, they are scaled down to it, and where that is more than twice the time,
              since somebody lies, that time is water-filled by r over them. Of a suspect (share/trust.py) held time,
              until it has drained, less the costs of the others; what these report later is taken off again
    look      each L; a small one, which opens gates and closes none, at a REQUEST and at a RELEASE
    d, p      demand: cost / (cost + own idle time, also between kernels), means over 0.5 s and over 20 ms
    b         bucket: r dt − cost, from −B, or less by one long cost, to r B. Who has b ≥ 0 is within its guarantee
    heavy     has work, and p > 0.9 or, with b < 0, no drain of its own in the last 0.8 L of GPU time; light: not heavy.
              A suspect is heavy, and its d is 1
    e         water-filling of the device by r over the demands min(κ d, limit)
    charge    cost; and the device's idle time while somebody was kept out, by r: to the protected that are in; if
              there are none, to those in that are not resident
    lag       += e/Σe × (sum of charges) − charge; what is above M, or the most that was charged at once lately (a long
              kernel, which nothing can interrupt) to each of the others, forgives their debts. So Σ lag = 0
    entitled  lag ≥ 0 or b ≥ 0
    due       0.95 min(d, r, limit); r d where Σ d < 1.05, since there is room for all then
    protected light, and used less than 0.95 r d in the last second (0.7 r d: e is by r, where that is above κ d); or,
              with lag > 0, less than its due, and lacks 0.1 or more of what those use that would be kept out for it
    queue     a heavy one beside light ones, where there is no room for all, and one while a latency client may come,
              launches when 20 µs or less of its own are queued; all others when Q or less are
    limit     TAT as in policy.py; closed while TAT − now > 50 ms
    latency   with work and budget (policy.py, counted in GPU time, and in all that goes by while it is alone and nobody
              drains) it is in alone

    state     gate    who                                     becomes
    away      closed  no work for 1 s: it has no lag          REQUEST: resident, turn, filler or shut
    resident  open    light, b ≥ 0                            look: turn, filler or shut once it is not light with b ≥ 0
    turn      open    of the others the earliest deadline     look: any
                      (L − lag)/e of those with lag ≥ 0
    filler    open    the next in that order, and then by     look: any
                      least −lag/e, while Σ p of those that
                      are in is below 1
    shut      closed  none of these; or not entitled while    REQUEST, RELEASE: resident, turn or filler. look: any
                      somebody is protected
    draining  closed  heavy and shut, with work queued: no    drained: shut (a RELEASE: the next heavy one is opened)
                      heavy one is opened meanwhile
    throttled closed  TAT − now > 50 ms                       at that time: resident, turn, filler or shut

From resident, turn and filler one becomes throttled or, when a latency client with budget has work, shut at any look;
away after 1 s without work; and shut by its own RELEASE where it was heavy or is of the latency class. A latency client
is closed while it has no work, so that its coming is a REQUEST; it is never resident. At most one heavy one is in.
While it is turns (measurement.py), and while nobody leaves gaps or nobody sees how busy the device is (arbiter.py),
the states of turns (contender.py) hold, and nothing is charged here. Lags go there and back with each; b is 0 when it
is let in again, or less by what it owes beyond B.

**Bound.** n have work; K is the longest kernel. (1) Σ lag = 0, and lag ≤ M. (2) A resident waits for the opening of
its gate alone, and then for the kernels before its own. (3) Whoever may run is let in at some time: within 20 ms/r
where it is light, at the latest once it is owed what the others were ahead. (4) One that saturates beside others that
do has −q < lag ≤ q with q = L + Q + K, as in policy.py. (5) A light one uses 0.95 r d, less what others take that are
within their guarantee.

*Sketch.* (1) All that is charged is divided, to the last ns; what is cut off forgives debts, which add up to as much.
(2) is the table. (3) b grows by r while it waits, and is at least −B: after 20 ms/r it is resident, or heavy and
entitled, and then kept out for nobody. Those that are in are charged for all that goes by, and it gets its part e of
that, so that its deadline becomes the earliest in the end; the first of those with lag ≥ 0 is let in at each look, and
where nobody is in, the first of all. (4) Charges are all of the time then, and the picks are policy.py's. (5) While its
gate is open the cycle of a program is stretched by others' kernels alone, so that it uses d (T − X) of T, where X is
what they use. When it has less than 0.95 r d it is protected whatever its lag, and those that used more than r are kept
out until the next look: so X ≤ (1 − r) T, but for B, and for a kernel and Q at each look.

**Limit.** Whoever is let in has TAT ≤ now + 50 ms, so the GPU time in any W is at most limit (W + 50 ms) + L + Q + K.

**Bad cases.** Kernels of 10 ms beside bursts of 20 µs: nothing can interrupt a kernel, and a light program may have
0.7 r d. Bursts longer than B: after r B they are as heavy as any, and wait for a turn. Who needs min(d, r) in full
needs the device idle: κ says how much of it may be. Costs that are 5 % wrong are charged 5 % wrong. Who keeps to a
period seems to want more the longer its kernels wait. Where a switch is dear, or one lies: measurement.py.
"""

from edgeshare.contract.units import NS_PER_S
from sharemgr.node.turns.beside.charges import cap, charge_hidden, divide, hand_over, protect, settle, take_over
from sharemgr.node.turns.beside.measurement import DEAR_NS, Beside, had_more_by_turns, lacks_by_sharing
from sharemgr.node.turns.beside.reports import Reports
from sharemgr.node.turns.gate import Gate, Rule
from sharemgr.node.turns.hand_overs import TURN
from sharemgr.node.turns.policy import fade
from sharemgr.node.turns.settings import STOOD_STILL_NS, Settings
from sharemgr.node.turns.share.latency import is_urgent, renew_budget
from sharemgr.node.turns.share.limit import throttled_until_ns

AHEAD = 1e15
"""Puts those that are ahead behind those that are not: more than any deadline, (L + M)/e."""
SHARED_NS = NS_PER_S // 10
"""Twenty slices: a burst of one that pauses is shorter, or it is as heavy as any."""
LOOKS_WORKED = 10
"""Who has not worked for so many slices may be looked at more rarely: longer than a pause of most programs."""
DRAIN_LOOK_NS = NS_PER_S // 10_000
"""A fiftieth of a slice: one that drains is looked at no more often because of its limit."""


class Gates:
    """The gates of one device. Its shell has each gate's demand read, says which are open still, calls settle, and then
    look; it does what the gates say, or what an arbiter says while it is turns. Times are ns and never go back."""

    def __init__(self, settings: Settings, rule: Rule, now_ns: int) -> None:
        self.gates: list[Gate] = []
        self.switch_ns = 0
        """What it costs the device to go from one process to another, as measured there; 0: not known."""
        self._settings, self._rule = settings, rule
        self.beside = Beside()
        """Says whether it is turns."""
        self.reports = Reports(self.beside)
        """Say who lies."""
        self._now_ns = now_ns
        # Of the last whole look; of the last in which one of several left gaps.
        self._look_ns = self._shared_ns = now_ns
        self._alone: Gate | None = None  # of the latency class, and nobody else is let in
        self._drains = self._protects = False  # one called back has not drained, and has the device; one is protected
        self._room = False  # Σ d is so small that all have room
        self._busy_ns = 0  # since the last whole look
        self.longest_ns = 0  # the most that one was charged at once lately, less a part of the time since
        self._open_ns = 0  # time that went by and is nobody's yet

    @property
    def in_turns(self) -> bool:
        """Whether exclusive turns are to be granted instead, charged by held time."""
        return self.beside.in_turns

    @property
    def shared(self) -> bool:
        """Whether one of several leaves gaps, or did a moment ago. Where none does, turns lose less."""
        return self._now_ns - self._shared_ns < SHARED_NS

    @property
    def worked(self) -> bool:
        """Whether anybody has used the device lately, or wants to."""
        return any(gate.active and self._now_ns - gate.worked_ns < LOOKS_WORKED * self.slice_ns for gate in self.gates)

    @property
    def slice_ns(self) -> int:
        """L; more where a switch is dear, as by turns."""
        return max(self._settings.slice_ns, min(TURN * self.switch_ns, 2 * self._settings.slice_ns))

    def begin(self, gates: list[Gate], longest_ns: int, now_ns: int) -> None:
        """Decides for these from now on; the longest turn lately was so long."""
        self.gates, self.longest_ns = gates, longest_ns
        self._now_ns = self._look_ns = self._shared_ns = now_ns
        self._busy_ns = 0
        self._alone, self._drains, self._protects = None, False, False
        self.beside.begin()
        for gate in gates:
            gate.end_turns(now_ns)
            gate.begin()
        take_over(gates, self._rule, now_ns)
        self._open_ns = sum(gate.demand.running_ns for gate in gates)

    def add(self, gate: Gate) -> None:
        """Adds an allocation, with its gate closed."""
        gate.begin()
        self.gates.append(gate)

    def remove(self, gate: Gate) -> None:
        """Removes one; what it owes or is owed is divided among the others."""
        self.gates.remove(gate)
        if self._alone is gate:
            self._alone = None
        divide([other for other in self.gates if other.active], gate.lag_ns)

    def end(self, now_ns: int) -> None:
        """Turns begin. Credit beyond a slice is for what was long, as that of one that comes is."""
        for gate in self.gates:
            gate.begin_turns(now_ns)
        hand_over(self.gates, self.slice_ns, self.longest_ns, now_ns)
        self.gates = []

    def report(self, gate: Gate, now_ns: int) -> None:
        """Takes in what one says that it used while it is turns."""
        gpu_ns = gate.demand.take()
        gate.note_turns(gpu_ns, self._rule.away_ns, now_ns)
        self.reports.note(gate, gpu_ns)

    def doubt(self, gate: Gate, now_ns: int) -> None:
        """One lies: what it hid it is charged with like a long kernel, and from now on it is charged for what it
        holds."""
        hidden_ns = gate.trust.lose(now_ns)
        gate.suspect = gate.heavy = True
        charge_hidden(self.gates, gate, hidden_ns)
        self.longest_ns = max(self.longest_ns, hidden_ns)

    def rest(self, now_ns: int) -> None:
        """Looks, while turns are taken, whether they are to be taken for longer."""
        self.beside.look(now_ns)

    def settle(self, now_ns: int) -> None:
        """Charges what the pages say was used since the last call."""
        elapsed_ns = now_ns - self._now_ns
        if elapsed_ns > 0:
            self._now_ns = now_ns
            for gate in self.gates:
                self.reports.note(gate, gate.demand.gpu_ns)
            before_ns = self._open_ns
            busy_ns, self._open_ns = settle(self.gates, self._rule, self.slice_ns, elapsed_ns, before_ns, now_ns)
            self.longest_ns = max(fade(self.longest_ns, elapsed_ns), *(gate.charged_ns for gate in self.gates), 0)
            cap([gate for gate in self.gates if gate.active], self._rule.most_lag_ns, self.longest_ns)
            # What runs and is nobody's yet keeps the device busy, too.
            self._busy_ns += busy_ns + self._open_ns - before_ns
            if self._alone is not None and not self._drains and elapsed_ns < STOOD_STILL_NS:
                # All others are kept out for as long as it is in: what it queued may never end, or be a lie.
                self._alone.standing.budget_ns += self._alone.used_ns - elapsed_ns

    def look(self, now_ns: int, whole: bool) -> None:
        """Decides which gates are open; unless it is ``whole``, it closes none but for a limit or a latency client."""
        for gate in self.gates:
            gate.begin_look()
        competing = [gate for gate in self.gates if gate.active or gate.demand.waits]
        if whole:
            self._judge(competing, now_ns)
            self._room = protect(competing, self._rule)
            self._protects = any(gate.protected for gate in competing)
        if self.in_turns:
            return
        allowed = [gate for gate in competing if throttled_until_ns(gate.standing, self._settings) <= now_ns]
        urgent = self._urgent(allowed, now_ns)
        self._alone = urgent[0] if urgent else None
        self._open(urgent or self._choose(allowed, whole))
        self._drains = any(gate.demand.queued and not gate.open for gate in self.gates)
        for gate in self.gates:
            gate.end_look()

    def look_ns(self, now_ns: int) -> int:
        """When the next whole look is due after one now."""
        at_ns = now_ns + self.slice_ns
        for gate in self.gates:
            until_ns = throttled_until_ns(gate.standing, self._settings)
            if gate.demand.works and until_ns > now_ns:
                # What it queued may use just what its limit leaves: then it may compete in a moment, again and again.
                drains = gate.demand.queued and not gate.open
                at_ns = min(at_ns, max(until_ns, now_ns + DRAIN_LOOK_NS) if drains else until_ns)
        return at_ns

    def _urgent(self, allowed: list[Gate], now_ns: int) -> list[Gate]:
        """The one of the latency class that has work and budget, whose period ends first; none: nobody."""
        best: Gate | None = None
        for gate in allowed:
            standing = gate.standing
            if not standing.latency or not gate.demand.works:
                continue
            if not gate.worked:
                renew_budget(standing, now_ns, self._settings)
            if is_urgent(standing, now_ns, self._settings) and (
                best is None or standing.period_end_ns < best.standing.period_end_ns
            ):
                best = gate
        return [best] if best is not None else []

    def _choose(self, allowed: list[Gate], whole: bool) -> list[Gate]:
        chosen = [gate for gate in allowed if gate.resident or (gate.open and not whole)]
        turn_taken = not all(gate.resident for gate in chosen)
        full = sum(gate.fullness for gate in chosen)
        kept_out = False
        for gate in sorted(allowed, key=self._deadline):
            if gate in chosen or ((gate.standing.latency or gate.suspect) and not gate.demand.works):
                continue
            # A heavy one is full by itself: nobody is let in beside it but residents, and no other heavy one.
            if full >= 1 and (turn_taken or gate.lag_ns < 0):
                continue
            if self._protects and full > 0 and not gate.entitled:
                kept_out = True
                continue
            chosen.append(gate)
            turn_taken = True
            full += gate.fullness
        if whole and not kept_out:
            for gate in allowed:
                gate.protected = False
        return chosen

    def _deadline(self, gate: Gate) -> float:
        part = max(gate.part, gate.standing.request_percent / 1000)
        if gate.lag_ns < 0:
            return AHEAD - gate.lag_ns / part
        return (self._settings.slice_ns - gate.lag_ns) / part

    def _open(self, chosen: list[Gate]) -> None:
        draining = any(gate.heavy and gate.demand.queued and gate not in chosen for gate in self.gates)
        shared = any(not gate.heavy for gate in chosen) and not self._room
        # Closed until it has work: what is queued by then it waits for, one kernel in any case.
        awaited = any(gate.standing.latency and gate.active for gate in self.gates)
        for gate in self.gates:
            gate.open = gate in chosen and (gate.open or not gate.heavy or not draining)
            short = gate.heavy and (shared or awaited)
            gate.cap_ns = self._rule.heavy_queue_ns if short else self._settings.queue_cap_ns

    def _judge(self, competing: list[Gate], now_ns: int) -> None:
        """Holds what came of the look that is over against what turns would have given."""
        elapsed_ns = now_ns - self._look_ns
        believed = [gate for gate in competing if not gate.suspect]
        if elapsed_ns > 0 and len(competing) > 1 and self.switch_ns > DEAR_NS and not self.in_turns:
            self.beside.note_look(competing, self._busy_ns / elapsed_ns, now_ns)
            if any(lacks_by_sharing(gate) for gate in believed) or (not self._room and had_more_by_turns(believed)):
                self.beside.take_turns(now_ns)
        if len(competing) > 1 and any(gate.demand.leaves_gaps for gate in believed):
            self._shared_ns = now_ns
        self.beside.look(now_ns)
        self._look_ns, self._busy_ns = now_ns, 0
