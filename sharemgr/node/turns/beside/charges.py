"""Who is charged for what of one device's time, and what each is owed for it (rule.py says why)."""

from sharemgr.node.turns.demand import fill
from sharemgr.node.turns.gate import LEAST_PART, Gate, Rule
from sharemgr.node.turns.settings import STOOD_STILL_NS
from sharemgr.node.turns.share.limit import charge_limit

COSTS_MOST = 2
"""Costs that add up to more than so many times the time that went by are no error: somebody lies."""


def take_over(gates: list[Gate], rule: Rule, now_ns: int) -> None:
    """What they owe and are owed is as by turns, which are over."""
    for gate in gates:
        gate.take_over(rule.bucket_ns, now_ns)
    active = [gate for gate in gates if gate.active]
    divide(active, -sum(gate.lag_ns for gate in active))


def hand_over(gates: list[Gate], most_ns: int, longest_ns: int, now_ns: int) -> None:
    """Turns begin, and what the gates owe and are owed is then as it was here, but for credit beyond the most (cap)."""
    cap([gate for gate in gates if gate.active], most_ns, longest_ns)
    for gate in gates:
        gate.hand_over(now_ns)


def settle(gates: list[Gate], rule: Rule, slice_ns: int, elapsed_ns: int, open_ns: int, now_ns: int) -> tuple[int, int]:
    """Charges the gates of a device what their pages say was used in the time that went by. ``open_ns`` of what went by
    before is nobody's yet, since what ran then had not ended. Returns how long the device was busy, and what is open
    now."""
    free_ns = open_ns + elapsed_ns
    # What a suspect was charged for may have been another's, which says so now.
    held_ns = sum(gate.turn_ns for gate in gates)
    told_ns = [gate.demand.take() * (not gate.suspect) for gate in gates]
    used_ns = _fit(told_ns, gates, free_ns + held_ns)
    if elapsed_ns < STOOD_STILL_NS:
        _hold(gates, used_ns, elapsed_ns)
    busy_ns = sum(used_ns)
    open_ns = min(free_ns - busy_ns, sum(gate.demand.running_ns for gate in gates if not gate.suspect))
    for gate, gpu_ns in zip(gates, used_ns, strict=True):
        gate.used_ns = gate.charged_ns = gpu_ns
        _note_work(gates, gate, rule, gpu_ns, now_ns)
        if elapsed_ns < STOOD_STILL_NS:
            _charge(gate, rule, gpu_ns, elapsed_ns, now_ns)
        gate.heavy = gate.suspect or gate.demand.heavy(slice_ns, gate.bucket_ns >= 0)
    active = [gate for gate in gates if gate.active]
    _set_parts(active, rule)
    if elapsed_ns < STOOD_STILL_NS:
        divide(active, busy_ns + _charge_idle(active, free_ns - busy_ns - open_ns))
    return busy_ns, open_ns


def _fit(told_ns: list[int], gates: list[Gate], free_ns: int) -> list[int]:
    """What they say that they used, where that is more than the time that went by: costs are scaled down to it. Where
    somebody lies, nobody is charged less than its part for it: who is in would stay in, and others would wait for
    ever."""
    sum_ns = sum(told_ns)
    if sum_ns <= free_ns:
        return told_ns
    if sum_ns <= COSTS_MOST * free_ns:
        return [each_ns * free_ns // sum_ns for each_ns in told_ns]
    parts = fill([each_ns / free_ns for each_ns in told_ns], [gate.standing.request_percent for gate in gates])
    return [min(each_ns, int(part * free_ns)) for each_ns, part in zip(told_ns, parts, strict=True)]


def _hold(gates: list[Gate], used_ns: list[int], elapsed_ns: int) -> None:
    """Puts down for suspects what they held and the others did not use. What these say later that they used meanwhile
    is taken off again, as far as it was put down since the suspect was let in."""
    holders = [index for index, gate in enumerate(gates) if gate.suspect and gate.held]
    left_ns = elapsed_ns - sum(used_ns) if holders else 0
    for others, index in zip(reversed(range(len(holders))), holders, strict=True):
        gate = gates[index]
        used_ns[index] = max(-gate.turn_ns, left_ns // (others + 1))
        left_ns -= used_ns[index]
        gate.turn_ns += used_ns[index]


def charge_hidden(gates: list[Gate], gate: Gate, hidden_ns: int) -> None:
    """Charges one of the gates with what it used at some time and did not report. By turns it was charged for that when
    it held the device."""
    if gate in gates and gate.active:
        gate.lag_ns -= hidden_ns
        gate.bucket_ns -= hidden_ns
        charge_limit(gate.standing, hidden_ns)
        divide([each for each in gates if each.active], hidden_ns)


def divide(gates: list[Gate], ns: int) -> None:
    """Adds to the lags of gates by their parts, to the last ns, so that the sum of all is what it was."""
    left_ns, left_part = ns, sum(gate.part for gate in gates)
    for index, gate in enumerate(gates):
        part_ns = int(left_ns * gate.part / left_part) if index + 1 < len(gates) else left_ns
        gate.lag_ns += part_ns
        left_ns -= part_ns
        left_part -= gate.part


def cap(active: list[Gate], most_ns: int, longest_ns: int) -> None:
    """Takes from lags what is above the most that one is owed, which is more where each of the others may have used so
    much at once. It forgives debts, so that nobody who is in is paid for it by those who wait."""
    most_ns = max(most_ns, longest_ns * (len(active) - 1))
    excess_ns = 0
    for gate in active:
        if gate.lag_ns > most_ns:
            excess_ns += gate.lag_ns - most_ns
            gate.lag_ns = most_ns
    owed_ns = -sum(gate.lag_ns for gate in active if gate.lag_ns < 0)
    for gate in active:
        if gate.lag_ns < 0 and excess_ns > 0:
            part_ns = -(gate.lag_ns * excess_ns // owed_ns)
            owed_ns += gate.lag_ns
            gate.lag_ns += part_ns
            excess_ns -= part_ns


def _note_work(gates: list[Gate], gate: Gate, rule: Rule, gpu_ns: int, now_ns: int) -> None:
    """Has it compete while it has work, and for a while longer."""
    if gpu_ns or gate.demand.works:
        gate.wake(now_ns)
    elif gate.active and now_ns - gate.worked_ns > rule.away_ns:
        gate.worked_ns = -1
        lag_ns, gate.lag_ns = gate.lag_ns, 0
        divide([other for other in gates if other.active], lag_ns)


def _charge(gate: Gate, rule: Rule, gpu_ns: int, elapsed_ns: int, now_ns: int) -> None:
    standing, percent, most_ns = gate.standing, gate.standing.request_percent, rule.bucket_ns
    standing.tat_ns = max(standing.tat_ns, now_ns - elapsed_ns)
    charge_limit(standing, gpu_ns)
    standing.budget_ns -= gpu_ns
    bucket_ns = gate.bucket_ns + elapsed_ns * percent // 100 - gpu_ns
    # What it used at once nothing could interrupt, and it is not within its guarantee before it has earned that.
    least_ns = min(-most_ns, -gpu_ns, gate.bucket_ns)
    gate.bucket_ns = max(least_ns, min(bucket_ns, most_ns * percent // 100))
    if gate.active:
        gate.lag_ns -= gpu_ns
        gate.demand.note_used(gpu_ns, elapsed_ns)


def _set_parts(active: list[Gate], rule: Rule) -> None:
    demands = [
        min(max(rule.kappa * gate.usual, gate.request if gate.lacks else 0), gate.standing.limit_percent / 100)
        for gate in active
    ]
    parts = fill(demands, [gate.standing.request_percent for gate in active])
    for gate, part in zip(active, parts, strict=True):
        gate.part = max(part, LEAST_PART)


def protect(competing: list[Gate], rule: Rule) -> bool:
    """Finds who falls short of what it is due and could have it if others were kept out; returns whether all have
    room."""
    room = sum(gate.usual for gate in competing) < rule.room
    for gate in competing:
        demand, limit = gate.demand, gate.standing.limit_percent / 100
        due = gate.floor if room else rule.met * min(gate.usual, gate.request, limit)
        others = sum(other.demand.used for other in competing if other is not gate and not other.entitled)
        worth = gate.lag_ns > 0 and gate.usual - demand.used >= rule.worth * others and demand.used < due
        gate.protected = not gate.heavy and (worth or demand.used < rule.met * gate.floor)
        gate.lacks = gate.protected and demand.used < rule.least * gate.floor
    return room


def _charge_idle(active: list[Gate], idle_ns: int) -> int:
    """Charges idle time to those for whom it was kept, where somebody was kept out; returns how much. Nothing is kept
    for a resident that is not protected: what goes by while there are none but such is nobody's, as a hand-over is."""
    if not any(gate.demand.waits and not gate.open for gate in active):
        return 0
    inside = [gate for gate in active if gate.open and (gate.protected or not gate.resident)]
    kept_for = [gate for gate in inside if gate.protected] or inside
    weight = sum(gate.standing.request_percent for gate in kept_for)
    kept_ns = 0
    for gate in kept_for:
        part_ns = idle_ns * gate.standing.request_percent // weight
        gate.lag_ns -= part_ns
        gate.charged_ns += part_ns
        kept_ns += part_ns
    return kept_ns
