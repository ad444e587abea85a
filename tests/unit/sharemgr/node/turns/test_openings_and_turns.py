"""From several that are let in at once to turns, and back: nothing that waits is lost."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.account import State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Grant, Revoke
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.settings import Share
from tests.kit.sim.device.openings import SETTINGS, Device, one_in, one_light


def test_going_to_turns_calls_everybody_back_and_nothing_that_waits_is_lost() -> None:
    device = one_light(one=30, two=30)
    one_in(device)
    inside = {name for name, state in device.accounts().items() if state is State.HOLDING}
    assert len(inside) == 2
    device.said = []
    device.an_old_one_comes()
    assert {each.allocation_id for each in device.said if isinstance(each, Revoke)} == inside
    assert not any(isinstance(each, Grant) for each in device.said)
    device.run_until_turns()
    said = device.said + device.run(50 * MS)
    assert {each.allocation_id for each in said if isinstance(each, Grant)} == {"light", "one", "two"}
    assert list(device.accounts().values()).count(State.HOLDING) <= 1


def test_a_limit_holds_however_often_one_goes_to_turns_and_back() -> None:
    device = Device(light=30, other=30, limited=Share(20, 20))
    device.start("light", 0.2)
    device.start("other", 1)
    device.start("limited", 1)
    device.run_until_beside()
    begin_ns, used_ns = device.now_ns, device.programs["limited"].used_ns
    for _ in range(50):
        device.an_old_one_comes()
        device.run_until_turns()
        device.do(device.arbiter.remove("old", device.now_ns))
        assert not device.arbiter.beside
        device.run_until_beside()
    span_ns = device.now_ns - begin_ns + SETTINGS.limit_burst_ns
    most_ns = span_ns * 20 // 100 + SETTINGS.slice_ns + MS
    assert device.programs["limited"].used_ns - used_ns <= most_ns


def test_what_one_took_at_once_is_owed_however_often_one_goes_to_turns_and_back() -> None:
    device = Device(light=10, one=70, long=15)
    device.start("light", 0.05)
    device.start("one", 1)
    device.start("long", 1)
    device.programs["long"].kernel_ns = 400 * MS
    device.run_until_beside()
    begin_ns, used_ns = device.now_ns, device.programs["long"].used_ns
    for _ in range(20):
        device.an_old_one_comes()
        device.run_until_turns()
        device.run(200 * MS)
        device.do(device.arbiter.remove("old", device.now_ns))
        device.run_until_beside()
        device.run(200 * MS)
    span_ns = device.now_ns - begin_ns
    assert device.programs["long"].used_ns - used_ns <= span_ns * 15 // 85 + 400 * MS


def test_several_are_let_in_again_after_turns_and_whoever_waits_with_them() -> None:
    device = one_light(one=30, two=30)
    device.an_old_one_comes()
    device.run(300 * MS)
    assert not device.arbiter.beside
    device.do(device.arbiter.remove("old", device.now_ns))
    device.run_until_beside()
    said = device.run(50 * MS)
    assert {each.allocation_id for each in said if isinstance(each, Grant)} >= {"one", "two"}
    assert device.account("light").state is State.HOLDING


@pytest.mark.parametrize("says", [True, False])
def test_a_device_of_which_nobody_says_how_busy_it_is_takes_turns(says: bool) -> None:
    device = one_light(heavy=40)
    device.watched = says
    device.run(5 * S)
    assert device.arbiter.beside is says


def test_a_device_of_which_nobody_ever_said_how_busy_it_is_takes_turns() -> None:
    arbiter = Arbiter(SETTINGS)
    device = Device(light=40, heavy=40)
    device.arbiter, device.watched = arbiter, False
    for name in ("light", "heavy"):
        arbiter.add(name, Share(40, 100), 0)
        arbiter.join(name, 1, 0, beside=True)
    device.start("light", 0.05)
    device.start("heavy", 1)
    device.run(2 * S)
    assert not arbiter.beside


def test_long_kernels_while_it_is_turns_are_not_taken_for_lies() -> None:
    device = Device(light=30, one=30, two=30)
    for name in ("one", "two"):
        device.start(name, 1)
        device.programs[name].kernel_ns = 700 * MS
    device.run(6 * S)
    assert not device.arbiter.beside
    device.start("light", 0.05)
    device.run_until_beside()


@pytest.mark.parametrize("lies", [True, False])
def test_whose_counters_go_back_lies_and_has_all_take_turns(lies: bool) -> None:
    device = one_light(heavy=40)
    device.arbiter.read("light", Use(lies=lies), device.now_ns)
    device.run(2 * S)
    assert device.arbiter.beside is not lies


@pytest.mark.parametrize("known", [True, False])
def test_what_is_told_after_it_was_not_known_when_pages_were_read_is_no_lie(known: bool) -> None:
    device = one_light(heavy=40)
    device.run_until_beside()
    device.arbiter.see(0 if known else None, device.now_ns)
    device.arbiter.read("light", Use(gpu_ns=5 * S), device.now_ns)
    device.run(2 * S)
    assert device.arbiter.beside is not known


def test_what_others_did_before_anybody_came_is_no_lie() -> None:
    device = Device(light=40, heavy=60)
    device.arbiter = Arbiter(SETTINGS)
    device.arbiter.see(0, 0)
    for name, percent in (("light", 40), ("heavy", 60)):
        device.arbiter.add(name, Share(percent, 100), 0)
        device.arbiter.join(name, 1, 0, beside=True)
    # A program without a hook had the device for seconds, and has ended.
    device.arbiter.see(5 * S, 0)
    device.start("light", 0.2)
    device.start("heavy", 1)
    device.run_until_beside()
