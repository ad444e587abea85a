"""Whom the rule of the gates keeps out for whom."""

from dataclasses import dataclass

from edgeshare.contract.units import NS_PER_MS as MS
from sharemgr.node.turns.beside.rule import DRAIN_LOOK_NS, Gates
from sharemgr.node.turns.gate import Gate, Rule
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.share.standing import Standing

SETTINGS = Settings()
RULE = Rule()
LOOKS = 2000
JUDGED = 200
"""The last ones: a second."""


@dataclass(frozen=True)
class Leaver:
    """One that leaves gaps: what it uses of a look, and how long it is idle then, by itself and beside all others."""

    percent: int
    alone: tuple[int, int]
    beside: tuple[int, int]


FEW = Leaver(60, (385_000, 4_615_000), (85_000, 1_015_000))
LONG = Leaver(5, (3_700_000, 1_300_000), (3_700_000, 1_300_000))
MANY = Leaver(35, (1_250_000, 3_750_000), (1_000_000, 3_000_000))
"""A thirteenth of the device in short kernels, which wait behind those of the second, and that uses 15 requests."""


def rule_of(*shares: Share) -> Gates:
    """The rule with closed gates of these shares, in their order."""
    rule = Gates(SETTINGS, RULE, 0)
    for share in shares:
        rule.add(Gate(Standing(share, SETTINGS, 0), SETTINGS))
    return rule


def test_one_that_leaves_gaps_has_its_part_of_what_it_uses_alone_whatever_is_kept_free_for_that() -> None:
    leavers = (FEW, LONG, MANY)
    rule = rule_of(*(Share(leaver.percent, 100) for leaver in leavers))
    few, long, _ = rule.gates
    used_ns = []
    for look in range(LOOKS):
        now_ns = look * SETTINGS.slice_ns
        for gate, leaver in zip(rule.gates, leavers, strict=True):
            gpu_ns, idle_ns = leaver.beside if long.open else leaver.alone
            if look and gate.open:
                gate.demand.read(gpu_ns, idle_ns, gpu_ns, waits=False, queued=True, now_ns=now_ns)
            else:
                gate.demand.read(0, 0, 0, waits=True, queued=False, now_ns=now_ns)
        used_ns.append(few.demand.gpu_ns)
        rule.settle(now_ns)
        rule.look(now_ns, whole=True)
    alone_ns = FEW.alone[0] * JUDGED
    assert sum(used_ns[-JUDGED:]) >= 0.9 * FEW.percent / 100 * alone_ns
    # More than that is kept free for it no longer.
    assert sum(used_ns[-JUDGED:]) < 0.8 * alone_ns


def test_one_whose_drain_uses_just_what_its_limit_leaves_is_not_looked_at_all_the_time() -> None:
    rule = rule_of(Share(20, 25))
    (gate,) = rule.gates
    # With all of the device it comes to its limit after a third of the burst: four nanoseconds later it could compete.
    begin_ns = now_ns = gpu_ns = SETTINGS.limit_burst_ns // 3 + 2
    looks = 0
    while now_ns < begin_ns + 10 * MS:
        gate.open = False
        gate.demand.read(gpu_ns, 0, gpu_ns, waits=False, queued=True, now_ns=now_ns)
        rule.settle(now_ns)
        rule.look(now_ns, whole=True)
        assert not gate.open
        looked_ns, now_ns = now_ns, rule.look_ns(now_ns)
        gpu_ns = (now_ns - looked_ns) // 4
        looks += 1
        assert looks <= 10 * MS // DRAIN_LOOK_NS + 1


def test_a_heavy_one_keeps_its_queue_short_for_as_long_as_a_latency_client_may_come() -> None:
    rule = rule_of(Share(70, 100), Share(30, 100, latency=True))
    heavy, urgent = rule.gates
    caps_ns = []
    for look in range(400):
        now_ns = (look + 1) * SETTINGS.slice_ns
        # The one asks in the first look alone, and had its turn in the second.
        ran = look == 1
        urgent.demand.read(MS if ran else 0, 0, 0, waits=look == 0, queued=False, now_ns=now_ns)
        heavy_ns = SETTINGS.slice_ns if look > 1 else 0
        heavy.demand.read(heavy_ns, 0, now_ns, waits=not heavy.open, queued=heavy.open, now_ns=now_ns)
        rule.settle(now_ns)
        rule.look(now_ns, whole=True)
        caps_ns.append(heavy.cap_ns)
    away = 2 + Rule().away_ns // SETTINGS.slice_ns
    assert heavy.heavy
    assert set(caps_ns[50:away]) == {Rule().heavy_queue_ns}
    assert set(caps_ns[away + 2 :]) == {SETTINGS.queue_cap_ns}


def test_a_latency_client_pays_for_keeping_others_out_but_not_for_what_they_had_queued() -> None:
    rule = rule_of(Share(50, 100), Share(30, 100, latency=True))
    other, urgent = rule.gates
    other.open = True
    budgets_ns = []
    for now_ns in (MS, 2 * MS, 3 * MS, 4 * MS):
        # What the other has queued runs for the first two: it drains.
        other.demand.read(MS, 0, now_ns, waits=False, queued=now_ns < 3 * MS, now_ns=now_ns)
        urgent.demand.read(0, 0, 0, waits=not urgent.open, queued=urgent.open, now_ns=now_ns)
        rule.settle(now_ns)
        rule.look(now_ns, whole=False)
        budgets_ns.append(urgent.standing.budget_ns)
        assert (urgent.open, other.open) == (True, False)
    assert budgets_ns[1] == budgets_ns[0]
    assert budgets_ns[2] == budgets_ns[0]
    assert budgets_ns[3] == budgets_ns[0] - MS


def test_one_has_much_of_its_request_of_what_it_uses_alone_whoever_never_pauses() -> None:
    """Beside kernels that nothing interrupts it does a quarter of what it does alone, and its request pays for more."""
    light, heavy = Leaver(70, (250_000, 4_750_000), (60_000, 1_140_000)), 30
    rule = rule_of(Share(light.percent, 100), Share(heavy, 100))
    one, other = rule.gates
    used_ns, others_ns = [], []
    for look in range(LOOKS):
        now_ns = look * SETTINGS.slice_ns
        gpu_ns, idle_ns = light.beside if other.open else light.alone
        one.demand.read(gpu_ns, idle_ns, gpu_ns, waits=not one.open, queued=one.open, now_ns=now_ns)
        rest_ns = SETTINGS.slice_ns - gpu_ns if other.open else 0
        other.demand.read(rest_ns, 0, rest_ns, waits=not other.open, queued=other.open, now_ns=now_ns)
        used_ns.append(gpu_ns)
        others_ns.append(rest_ns)
        rule.settle(now_ns)
        rule.look(now_ns, whole=True)
    assert sum(used_ns[-JUDGED:]) >= 0.66 * light.percent / 100 * light.alone[0] * JUDGED
    assert sum(others_ns[-JUDGED:]) >= heavy / 100 * SETTINGS.slice_ns * JUDGED
