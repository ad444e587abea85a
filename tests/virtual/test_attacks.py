"""What hostile clients do over their socket costs the others nothing, to half a point, and is counted. In real time
tests/node/test_attacks.py judges the order alone, and what only a real kernel shows: memory, descriptors, the log, the
gRPC sockets."""

from collections.abc import Callable, Collection

import pytest

from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from sharemgr.node.clients.budget import GUARANTEE_BURST_S
from sharemgr.node.clients.listener import BACKLOG, CONNECTIONS_PER_S
from sharemgr.node.clients.memory_records import ANSWER_RECORDS, REFUSAL_RECORDS
from sharemgr.node.config import Config
from sharemgr.node.turns.settings import Settings
from tests.kit.virtual.cases import attacks, step_programs
from tests.kit.virtual.cases.attacks import PACKETS
from tests.kit.virtual.cases.case import Attacker, Case, Client
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.world import World

VICTIMS = tuple(Client(program=step_programs.burn(1000), percent=percent) for percent in (60, 20))
RULE = Settings()

SETTLE_MS, MEASURE_MS, WINDOW_MS = 1000, 4000, 2000
POINTS = 0.5
"""How far a victim's part may be, in any two seconds, from what it is without the attack."""

EDGES_POINTS = 100 * 2 * (RULE.slice_ns + RULE.queue_cap_ns + NS_PER_MS) / (WINDOW_MS * NS_PER_MS)
"""The same where many have slices in between: two seconds may begin and end within a turn."""

KEPT_NS = RULE.slice_ns + RULE.queue_cap_ns + RULE.drain_grace_ns
"""How long the GPU is idle for one who has a slice and gives nothing back."""

ATTACKS: dict[str, tuple[Callable[[], Attacker], set[str]]] = {
    "malformed records": (attacks.malformed, set(PACKETS)),
    "stale records": (attacks.stale, {"stale", "flood"}),
    "a flood": (attacks.flood, {"flood"}),
    "unread answers": (attacks.deaf, {"unread"}),
    "slices that are kept": (attacks.keeps, set()),
    "lies about usage": (attacks.lies_about_usage, {"false-usage"}),
    "lies about memory": (attacks.lies_about_memory, {"false-memory"}),
    "memory that is refused": (attacks.asks_for_memory, {"flood"}),
    "connections": (attacks.crowd, {"connections", "clients"}),
    "half-closed sockets": (attacks.half_closes, set()),
}
"""How each is done, and what is counted of it: at least that, as who is sent away comes back more often than it may."""

UNREAD_RECORDS = 300
"""What there is room for in a socket, at most (net.core.wmem_default)."""

LONGEST_NS = 100 * NS_PER_MS
"""The longest that a victim may wait. Beside several that are granted slices and keep them, for one that is kept and a
turn of each longer than else: who keeps one is owed none until the others have had theirs (policy.py, "owed")."""

TURN_NS = RULE.slice_ns + RULE.queue_cap_ns + NS_PER_MS
"""Of kernels of a millisecond."""

ASKING = ("a flood", "slices that are kept", "lies about usage", "descriptors")
"""These ask for slices, and leave them unused."""

seeds = pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in (2, 3))])


def attacked(world: World, seed: int, *attackers: Attacker) -> Report:
    """What happens beside these from the begin of the measured time on; none of them met anything but a manager that
    sends it away."""
    begun = tuple(each.model_copy(update={"delay_ms": SETTLE_MS}) for each in attackers)
    case = Case(clients=VICTIMS, attackers=begun, seed=seed, settle_ms=SETTLE_MS, measure_ms=MEASURE_MS)
    report = world.run(case)
    assert [each["error"] for each in report.attackers.values()] == [0] * len(attackers), report.attackers
    return report


def shares_percent(report: Report) -> list[list[float]]:
    """Each victim's part of what the GPU executed, in all windows."""
    window = WINDOW_MS // report.case.step_ms
    shares = []
    for before, after in zip(report.steps, report.steps[window:], strict=False):
        executed = {name: after["executed_ns"][name] - before["executed_ns"][name] for name in report.case.names}
        shares.append([100 * executed[name] / sum(executed.values()) for name in report.case.names])
    return shares


def longest_waits_ns(report: Report) -> list[int]:
    """Each victim's."""
    return [max(step["longest_wait_ns"][name] for step in report.steps) for name in report.case.names]


def assert_unharmed(
    world: World, report: Report, asking_percents: Collection[int], window_points: float = POINTS
) -> None:
    """The victims have their parts in all and in each window, wait not for long, and are accused of nothing; the GPU is
    idle for no longer than those who ask for slices have it by their requests, and one kept slice of each."""
    rest = attacked(world, report.case.seed)
    due = [rest.share_percent(name) for name in report.case.names]
    off = max(abs(share - part) for shares in shares_percent(report) for share, part in zip(shares, due, strict=True))
    assert off <= window_points, report.case.seed
    assert [report.share_percent(name) for name in report.case.names] == pytest.approx(due, abs=POINTS)
    asked = sum(asking_percents)
    idle_percent = 100 * asked / (sum(victim.percent for victim in VICTIMS) + asked)
    idle_percent += 100 * len(asking_percents) * KEPT_NS / report.measured_ns
    assert report.used_percent > 99 - idle_percent
    for name in report.case.names:
        assert not report.offences(name)
    for longest_ns, usual_ns in zip(longest_waits_ns(report), longest_waits_ns(rest), strict=True):
        several_ns = usual_ns + KEPT_NS + len(asking_percents) * TURN_NS
        assert longest_ns <= (several_ns if len(asking_percents) > 1 else LONGEST_NS)


@seeds
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_costs_the_others_nothing_and_is_counted(world: World, name: str, seed: int) -> None:
    act, kinds = ATTACKS[name]
    report = attacked(world, seed, act())
    assert_unharmed(world, report, [attacks.PERCENT] if name in ASKING else [])
    assert kinds <= report.offences("a0").keys()
    assert (report.of("held_ns", "a0") > 0) == (name in ASKING)


@seeds
def test_lies_about_drains_cost_the_others_nothing(world: World, seed: int) -> None:
    assert_unharmed(world, attacked(world, seed, attacks.lies_about_drains()), [attacks.PERCENT])


@seeds
@pytest.mark.parametrize("drain_ms", [50, 95])
def test_many_that_keep_the_device_at_a_time_cost_nobody_a_wait_for_all_of_them(
    world: World, seed: int, drain_ms: int
) -> None:
    """One waits for a long turn, and for as little as one is due less of it than others; not for ten."""
    hogs = [attacks.drains_long(drain_ms).model_copy(update={"percent": 1}) for _ in range(10)]
    report = attacked(world, seed, *hogs)
    assert max(longest_waits_ns(report)) <= LONGEST_NS
    assert all(report.of("held_ns", name) > 0 for name in report.case.attacker_names)
    shares = [report.share_percent(name) for name in report.case.names]
    assert shares == pytest.approx([75, 25], abs=POINTS)


def test_a_flood_is_read_no_faster_than_it_may_come(world: World) -> None:
    report = attacked(world, 1, attacks.flood())
    # A quarter of a second's records at once, and what lies unread in the sockets.
    most = Config().max_records_per_s * (report.measured_ns / NS_PER_S + 0.25)
    assert report.attackers["a0"]["sent"] == pytest.approx(most, rel=0.05)


def test_an_answer_counts_as_another_record(world: World) -> None:
    report = attacked(world, 1, attacks.curious())
    most = Config().max_records_per_s * (report.measured_ns / NS_PER_S + 0.25)
    assert report.attackers["a0"]["sent"] == pytest.approx(most / 2, rel=0.05)


def test_a_refusal_is_paid_for_by_what_it_costs(world: World) -> None:
    """Of each of the allocation's clients it is looked at what it has said: of 64 as much as of 72 records. They ask
    all at once, eight times in a run, or nine: three are judged together."""
    reports = [attacked(world, seed, attacks.asks_for_memory()) for seed in (1, 2, 3)]
    costs = 1 + ANSWER_RECORDS + REFUSAL_RECORDS + attacks.ASKING
    most = sum(Config().max_records_per_s * (each.measured_ns / NS_PER_S + 0.25) / costs for each in reports)
    # One that was sent over each connection may lie there unread, behind its HELLO.
    asked = sum(each.attackers["a0"]["sent"] - 2 * attacks.ASKING for each in reports)
    assert most / 2 < asked <= most


@seeds
@pytest.mark.parametrize("act", [attacks.flood, attacks.stale])
def test_floods_of_many_allocations_cost_the_others_nothing(
    world: World, act: Callable[[], Attacker], seed: int
) -> None:
    """Beyond what each of them is guaranteed, all together are read no faster than one."""
    many = 20
    report = attacked(world, seed, *(act().model_copy(update={"percent": 1}) for _ in range(many)))
    shares = [report.share_percent(name) for name in report.case.names]
    assert shares == pytest.approx([75, 25], abs=1)
    assert not any(report.offences(name) for name in report.case.names)
    assert all("flood" in report.offences(name) for name in report.case.attacker_names)
    guaranteed = Config().max_records_per_s * many // 100
    most = (Config().max_records_per_s + guaranteed) * report.measured_ns / NS_PER_S
    at_once = Config().max_records_per_s // 4 + GUARANTEE_BURST_S * guaranteed
    unread = many * attacks.FLOODS * UNREAD_RECORDS
    assert sum(each["sent"] for each in report.attackers.values()) <= most + at_once + unread
    if act is attacks.stale:
        assert max(longest_waits_ns(report)) <= 100 * NS_PER_MS
    else:
        # They keep the slices that they ask for. It is no longer than where each asks once, but for one that is kept.
        once = attacked(world, seed, *(attacks.asks().model_copy(update={"percent": 1}) for _ in range(many)))
        for flooded_ns, once_ns in zip(longest_waits_ns(report), longest_waits_ns(once), strict=True):
            assert flooded_ns <= once_ns + KEPT_NS


def test_a_crowd_is_accepted_no_faster_than_it_may_come(world: World) -> None:
    report = attacked(world, 1, attacks.half_closes())
    most = CONNECTIONS_PER_S * report.measured_ns / NS_PER_S + 2 * Config().max_clients + BACKLOG
    assert report.attackers["a0"]["connected"] == pytest.approx(most, rel=0.05)


@seeds
def test_crowds_of_many_allocations_cost_the_others_nothing(world: World, seed: int) -> None:
    """Beyond what each of them is guaranteed, all together are accepted no faster than one."""
    many, config = 20, Config()
    report = attacked(world, seed, *(attacks.half_closes().model_copy(update={"percent": 1}) for _ in range(many)))
    assert_unharmed(world, report, [])
    # One a second each is guaranteed, and as many as may be in at once, and one that it pays for; of each some wait in
    # the backlog, which is one more than was asked for (listen(2)).
    most = (CONNECTIONS_PER_S + many) * report.measured_ns / NS_PER_S + 2 * config.max_clients
    most += many * (config.max_clients + 1 + BACKLOG + 1)
    assert sum(each["connected"] for each in report.attackers.values()) <= most


@pytest.mark.whole
def test_all_at_once_cost_the_others_nothing(world: World) -> None:
    report = attacked(world, 1, *(act().model_copy(update={"percent": 1}) for act, _ in ATTACKS.values()))
    assert_unharmed(world, report, [1] * len(ASKING), EDGES_POINTS)
    for attacker, (_, kinds) in zip(report.case.attacker_names, ATTACKS.values(), strict=True):
        assert kinds <= report.offences(attacker).keys()


def test_an_attack_is_the_same_each_time(world: World) -> None:
    first, second = (attacked(world, 1, attacks.flood(), attacks.malformed(), attacks.keeps()) for _ in range(2))
    assert first.steps == second.steps
    assert first.attackers == second.attackers
    assert first.figures["hash"] == second.figures["hash"]
