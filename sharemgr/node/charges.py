"""Who is charged for what of one device's time, and what each is owed for it (gates.py says why)."""

from dataclasses import dataclass

from sharemgr.node.demand import fill
from sharemgr.node.gate import LEAST_PART, Gate, Rule

COSTS_MOST = 2
"""Costs that add up to more than so many times the time that went by are no error: somebody lies."""


@dataclass(slots=True)
class Unended:
    """Time in which something ran that has not ended, so that no page tells of it yet."""

    open_ns: int = 0
    """It is nobody's yet."""
    in_turns_ns: int = 0
    """It was charged already, to whose turn it was: who used it is told of it, and charged no more."""


def settle(gates: list[Gate], rule: Rule, slice_ns: int, elapsed_ns: int, unended: Unended, now_ns: int) -> int:
    """Charges the gates of a device what their pages say was used in the time that went by, and in what of the time
    before had not ended. Returns how long the device was busy."""
    free_ns = unended.open_ns + elapsed_ns
    used_ns = _fit([gate.demand.take() for gate in gates], gates, free_ns + unended.in_turns_ns)
    charged_ns = _fit(used_ns, gates, free_ns)
    busy_ns = sum(charged_ns)
    running_ns = sum(gate.demand.running_ns for gate in gates)
    unended.open_ns = min(free_ns - busy_ns, running_ns)
    unended.in_turns_ns = min(unended.in_turns_ns - (sum(used_ns) - busy_ns), running_ns)
    for gate, gate_used_ns, gate_charged_ns in zip(gates, used_ns, charged_ns, strict=True):
        gate.used_ns, gate.charged_ns = gate_used_ns, gate_charged_ns
        _note_work(gates, gate, rule, gate_used_ns, now_ns)
        _charge(gate, rule, elapsed_ns, now_ns)
        gate.heavy = gate.demand.heavy(slice_ns, gate.bucket_ns >= 0)
    active = [gate for gate in gates if gate.active]
    _set_parts(active, rule)
    divide(active, busy_ns + _charge_idle(active, free_ns - busy_ns - unended.open_ns))
    _cap(active, rule.most_lag_ns)
    return busy_ns


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


def divide(gates: list[Gate], ns: int) -> None:
    """Adds to the lags of gates by their parts, to the last ns, so that the sum of all is what it was."""
    left_ns, left_part = ns, sum(gate.part for gate in gates)
    for index, gate in enumerate(gates):
        part_ns = int(left_ns * gate.part / left_part) if index + 1 < len(gates) else left_ns
        gate.lag_ns += part_ns
        left_ns -= part_ns
        left_part -= gate.part


def _cap(active: list[Gate], most_ns: int) -> None:
    """Takes from lags what is above the most that one is owed. It forgives debts, so that nobody who is in is paid for
    it by those who wait."""
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


def _charge(gate: Gate, rule: Rule, elapsed_ns: int, now_ns: int) -> None:
    standing, percent, most_ns = gate.standing, gate.standing.request_percent, rule.bucket_ns
    standing.tat_ns = max(standing.tat_ns, now_ns - elapsed_ns)
    standing.charge_limit(gate.used_ns)
    standing.budget_ns -= gate.charged_ns
    bucket_ns = gate.bucket_ns + elapsed_ns * percent // 100 - gate.charged_ns
    gate.bucket_ns = max(-most_ns, min(bucket_ns, most_ns * percent // 100))
    if gate.active:
        gate.lag_ns -= gate.charged_ns
        gate.demand.note_used(gate.charged_ns, elapsed_ns)


def _set_parts(active: list[Gate], rule: Rule) -> None:
    demands = [min(rule.kappa * gate.demand.usual, gate.standing.limit_percent / 100) for gate in active]
    parts = fill(demands, [gate.standing.request_percent for gate in active])
    for gate, part in zip(active, parts, strict=True):
        gate.part = max(part, LEAST_PART)


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
