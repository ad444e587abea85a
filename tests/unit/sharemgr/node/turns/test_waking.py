"""Who wakes within its part has the holder called back, pays for that, and is picked by the rule."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Command, Grant, Revoke
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()
SWITCH_NS = 250 * US
WOKE_NS = 10 * MS
"""When the light one wakes: what it owed for its first millisecond is forgiven by then."""


def device(hand_over_ns: int = 0, settings: Settings = SETTINGS, /, **shares: int | Share) -> Arbiter:
    """An arbiter with an allocation a name, each with a client that says how long hand-overs take. ``light`` had the
    device from 0 on for 1 ms, and had nothing more to do."""
    arbiter = Arbiter(settings)
    for name, share in shares.items():
        arbiter.add(name, share if isinstance(share, Share) else Share(share, 100), 0)
        arbiter.join(name, 1, 0)
        arbiter.hand_over(name, hand_over_ns)
    had_it(arbiter, "light", 0)
    return arbiter


def had_it(arbiter: Arbiter, name: str, now_ns: int) -> None:
    """An idle device is its for 1 ms, with nothing behind it."""
    arbiter.release(name, 1, granted(arbiter.request(name, 1, now_ns)).number, MS, False, now_ns + MS)
    arbiter.tick(now_ns + MS + SETTINGS.anticipation_ns)


def granted(commands: list[Command]) -> Grant:
    [grant] = [command for command in commands if isinstance(command, Grant)]
    return grant


def revoked(commands: list[Command]) -> list[str]:
    return [command.allocation_id for command in commands if isinstance(command, Revoke)]


def lag_ns(arbiter: Arbiter, name: str, now_ns: int) -> int:
    return arbiter.account(name, now_ns).lag_ns


def test_who_wakes_within_its_part_is_next_at_once() -> None:
    arbiter = device(light=50, busy=50)
    grant = granted(arbiter.request("busy", 1, WOKE_NS - MS))
    assert revoked(arbiter.request("light", 1, WOKE_NS)) == ["busy"]
    drained_ns = WOKE_NS + 100 * US
    assert granted(arbiter.release("busy", 1, grant.number, MS, True, drained_ns)).allocation_id == "light"
    assert lag_ns(arbiter, "light", drained_ns) == 50 * US


def test_a_turn_lasts_for_the_least_that_one_does() -> None:
    arbiter = device(light=50, busy=50)
    arbiter.request("busy", 1, WOKE_NS - 50 * US)
    assert revoked(arbiter.request("light", 1, WOKE_NS)) == []
    end_ns = WOKE_NS - 50 * US + SETTINGS.least_turn_ns
    assert arbiter.deadline_ns() == end_ns
    assert revoked(arbiter.tick(end_ns)) == ["busy"]


def test_where_a_hand_over_is_dear_a_turn_lasts_for_twelve() -> None:
    arbiter = device(SWITCH_NS, light=50, busy=50)
    arbiter.request("busy", 1, WOKE_NS)
    arbiter.request("light", 1, WOKE_NS)
    assert arbiter.deadline_ns() == WOKE_NS + 12 * SWITCH_NS


def test_who_has_had_more_than_its_part_waits_for_its_turn() -> None:
    arbiter = device(light=50, busy=50)
    taken = granted(arbiter.request("light", 1, WOKE_NS))
    arbiter.request("busy", 1, WOKE_NS)
    arbiter.release("light", 1, taken.number, 3 * MS, False, WOKE_NS + 3 * MS)
    grant = granted(arbiter.tick(WOKE_NS + 3 * MS + SETTINGS.anticipation_ns))
    end_ns = WOKE_NS + 3 * MS + SETTINGS.anticipation_ns + SETTINGS.slice_ns
    # It had 3 ms beside one that waited, and has earned 0.5 since.
    now_ns = end_ns - 4 * MS
    assert revoked(arbiter.request("light", 1, now_ns)) == []
    assert lag_ns(arbiter, "light", now_ns) < 0
    assert arbiter.deadline_ns() == end_ns
    assert arbiter.tick(end_ns) == [Revoke("busy", grant.number)]


def test_who_has_had_more_than_its_part_ends_no_turn_of_one_that_has_had_still_more() -> None:
    arbiter = device(light=30, busy=50, other=20)
    taken = granted(arbiter.request("light", 1, WOKE_NS))
    arbiter.request("busy", 1, WOKE_NS)
    arbiter.request("other", 1, WOKE_NS)
    arbiter.release("light", 1, taken.number, MS, False, WOKE_NS + MS)
    began_ns = WOKE_NS + MS + SETTINGS.anticipation_ns
    assert granted(arbiter.tick(began_ns)).allocation_id == "busy"
    now_ns = began_ns + 3 * MS
    assert revoked(arbiter.request("light", 1, now_ns)) == []
    assert lag_ns(arbiter, "busy", now_ns) < lag_ns(arbiter, "light", now_ns) < 0 < lag_ns(arbiter, "other", now_ns)
    assert arbiter.deadline_ns() == began_ns + SETTINGS.slice_ns


def test_a_holder_that_the_rule_would_pick_goes_on() -> None:
    arbiter = device(light=10, busy=80, other=10)
    had_it(arbiter, "busy", 2 * MS)
    grant = granted(arbiter.request("other", 1, 4 * MS))
    arbiter.request("busy", 1, 4 * MS + 1)
    commands = arbiter.tick(9 * MS)
    commands += arbiter.release("other", 1, grant.number, 5 * MS, True, 9 * MS)
    assert granted(commands).allocation_id == "busy"
    # It is far behind, and its deadline before that of one with a tenth, whose lag is 0 or more, too.
    assert revoked(arbiter.request("light", 1, WOKE_NS)) == []
    assert lag_ns(arbiter, "light", WOKE_NS) >= 0
    assert lag_ns(arbiter, "busy", WOKE_NS) > 0


def test_one_that_never_had_any_work_waits_for_the_end_of_the_slice() -> None:
    arbiter = device(light=50, busy=25, new=25)
    arbiter.request("busy", 1, WOKE_NS)
    assert revoked(arbiter.request("new", 1, WOKE_NS + 2 * MS)) == []
    assert arbiter.deadline_ns() == WOKE_NS + SETTINGS.slice_ns


def test_one_of_the_latency_class_within_its_budget_is_left_alone() -> None:
    arbiter = device(light=50, busy=Share(50, 100, latency=True))
    arbiter.request("busy", 1, WOKE_NS - MS)
    assert revoked(arbiter.request("light", 1, WOKE_NS)) == []


def test_an_exclusive_device_is_left_to_who_has_it() -> None:
    arbiter = device(0, Settings(exclusive=True), light=50, busy=50)
    arbiter.request("busy", 1, WOKE_NS - MS)
    assert revoked(arbiter.request("light", 1, WOKE_NS)) == []
    assert arbiter.deadline_ns() == WOKE_NS - MS + SETTINGS.slice_ns


@pytest.mark.parametrize("hand_over_ns", [0, 20 * US, SWITCH_NS])
def test_who_ends_another_ones_turn_pays_for_going_there_and_back(hand_over_ns: int) -> None:
    arbiter = device(hand_over_ns, light=60, busy=40)
    grant = granted(arbiter.request("busy", 1, WOKE_NS))
    commands = arbiter.request("light", 1, WOKE_NS + 4 * MS)
    now_ns = arbiter.turn_end_ns()
    assert revoked([*commands, *arbiter.tick(now_ns)]) == ["busy"]
    # The holder does not get it again for the hand-over that comes off its charge.
    taken = granted(arbiter.release("busy", 1, grant.number, MS, True, now_ns))
    assert taken.allocation_id == "light"
    before_ns = lag_ns(arbiter, "light", now_ns)
    arbiter.release("light", 1, taken.number, MS, True, now_ns + MS)
    charged_ns = (before_ns - lag_ns(arbiter, "light", now_ns + MS)) * 100 / 40
    assert charged_ns == pytest.approx(MS + 2 * hand_over_ns, abs=10)


def test_a_holder_is_promised_little_while_another_may_wake() -> None:
    arbiter = device(light=50, busy=50)
    grant = granted(arbiter.request("busy", 1, WOKE_NS))
    assert arbiter.slice_end_ns() == WOKE_NS + SETTINGS.least_turn_ns
    arbiter.tick(WOKE_NS + MS)
    assert arbiter.slice_end_ns() == 0
    arbiter.release("busy", 1, grant.number, MS, False, WOKE_NS + MS)
    arbiter.tick(WOKE_NS + MS + SETTINGS.anticipation_ns)
    arbiter.request("busy", 1, 2 * S)
    assert arbiter.slice_end_ns() == 2 * S + SETTINGS.slice_ns
