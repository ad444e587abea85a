"""What a manager tells of its turns, over its socket, while clients take them."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import groupby

import pytest

from edgeshare.client import ManagerClient
from edgeshare.contract.errors import NoRoom
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import (
    ALLOCATION_STATE_DRAINING,
    ALLOCATION_STATE_HOLDING,
    ALLOCATION_STATE_IDLE,
    ALLOCATION_STATE_WAITING,
    TurnChange,
    Turns,
)
from sharemgr.node.recorder import READERS_MAX
from tests.kit.manager.busy import burn
from tests.kit.manager.testbed import Testbed
from tests.kit.manager.wire_client import WireClient
from tests.kit.processes.waiting import PATIENCE_S

TURNS = 20

Told = list[TurnChange]
Pair = tuple[WireClient, WireClient]


@pytest.fixture
def pair(testbed: Testbed, calls: ManagerClient) -> Iterator[Pair]:
    """Clients of allocations one and two, each of which half of a GPU is."""
    with ExitStack() as stack:
        for name in ("one", "two"):
            wanted = Allocation(id=name, device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
            held = calls.hold(wanted, wait_for_manager=False)
            stack.callback(held.close)
            next(held)
        yield testbed.join("one"), testbed.join("two")


def until(told: Iterator[Turns], holds: Callable[[Told], bool]) -> Told:
    """All changes that are told until these show something."""
    changes: Told = []
    for turns in told:
        assert turns.lost_changes == 0
        changes += turns.changes
        if holds(changes):
            return changes
    raise AssertionError("the manager ended")


def grants(changes: Told) -> list[tuple[str, int]]:
    """Who was granted the device, one after the other, and the numbers of the grants."""
    held = [(each.allocation_id, each.grant) for each in changes if each.state == ALLOCATION_STATE_HOLDING]
    return [grant for grant, _ in groupby(held)]


def test_of_one_grant_it_is_told_that_one_waits_holds_drains_and_is_idle(calls: ManagerClient, pair: Pair) -> None:
    told = calls.turns(PATIENCE_S)
    begun = next(told)
    assert {(each.allocation_id, each.state) for each in begun.changes} == {
        ("one", ALLOCATION_STATE_IDLE),
        ("two", ALLOCATION_STATE_IDLE),
    }
    assert {each.id: each.request_percent for each in begun.allocations} == {"one": 50, "two": 50}
    one, two = pair
    one.request()
    number = one.granted()
    two.request()
    one.revoked()
    one.release(number)
    number = two.granted()
    one.request()
    two.revoked()
    two.release(number)
    changes = until(told, lambda changes: grants(changes)[2:] != [])
    of_two = [each for each in changes if each.allocation_id == "two"]
    assert [state for state, _ in groupby(each.state for each in of_two)] == [
        ALLOCATION_STATE_WAITING,
        ALLOCATION_STATE_HOLDING,
        ALLOCATION_STATE_DRAINING,
        ALLOCATION_STATE_IDLE,
    ]
    assert {each.grant for each in of_two if each.state != ALLOCATION_STATE_WAITING} == {number}
    times_ns = [each.at_ns for each in changes]
    assert times_ns == sorted(times_ns)
    assert begun.now_ns <= times_ns[0] <= times_ns[-1] <= time.monotonic_ns()


def take_turns(told: Iterator[Turns], pair: Pair, begun: Told) -> list[tuple[str, int]]:
    """Both keep the device busy, for so many turns; all changes that are told meanwhile are added. Who was granted it,
    and the numbers of the grants: who comes next is the manager's decision, by what each of them had. Each gives its
    turn back, also where it did that so late that the other one was let in before."""
    clients = dict(zip(("one", "two"), pair, strict=True))
    for client in pair:
        client.request()
    taken: list[tuple[str, int]] = []
    while len(taken) < TURNS:
        while len(grants(begun)) == len(taken):
            begun += until(told, lambda changes: grants(changes) != [])
        name, number = grants(begun)[len(taken)]
        client = clients[name]
        client.granted()
        taken.append((name, number))
        client.revoked()
        client.release(number, follows=True)
    return taken


def test_two_that_keep_the_device_busy_take_turns(calls: ManagerClient, pair: Pair) -> None:
    told = calls.turns(PATIENCE_S)
    next(told)
    changes: Told = []
    taken = take_turns(told, pair, changes)
    assert [number for _, number in taken] == [turn + 1 for turn in range(TURNS)]
    assert grants(changes)[:TURNS] == taken
    assert {name for name, _ in taken} == {"one", "two"}
    # At no time both have it, by turns.
    holding = ""
    for each in changes:
        assert not each.beside
        if each.state == ALLOCATION_STATE_HOLDING:
            assert holding in ("", each.allocation_id)
            holding = each.allocation_id
        elif each.allocation_id == holding:
            holding = ""


@pytest.mark.measures
def test_several_that_are_let_in_at_once_hold_at_once(testbed: Testbed, calls: ManagerClient) -> None:
    thinks = ("--mode", "think", "--kernel-us", "200", "--sync-every", "4", "--think-us", "3000")
    burn(testbed, "light", *thinks, percent=40)
    burn(testbed, "heavy", "--kernel-us", "1000", percent=60)

    def both_hold(changes: Told) -> bool:
        last = {each.allocation_id: each for each in changes if not each.removed}
        return sum(each.beside and each.state == ALLOCATION_STATE_HOLDING for each in last.values()) == 2

    until(calls.turns(PATIENCE_S), both_hold)


def test_one_that_comes_and_goes_is_named_and_told_as_gone(testbed: Testbed, calls: ManagerClient) -> None:
    told = calls.turns(PATIENCE_S)
    assert not next(told).changes
    held = calls.hold(Allocation(id="late", device_ids=testbed.uuids[:1], request_percent=7), wait_for_manager=False)
    next(held)
    held.close()
    names, removed = {}, False
    for turns in told:
        names |= {each.id: each.request_percent for each in turns.allocations}
        removed = any(each.removed for each in turns.changes)
        if removed:
            break
    assert removed
    assert names == {"late": 7}


def test_no_more_than_a_few_follow_and_one_that_goes_is_forgotten(testbed: Testbed, calls: ManagerClient) -> None:
    with ExitStack() as stack:
        followers = [stack.enter_context(testbed.calls()) for _ in range(READERS_MAX)]
        streams = [each.turns(PATIENCE_S) for each in followers]
        for stream in streams:
            next(stream)
        with pytest.raises(NoRoom, match="follow the turns already"):
            next(calls.turns(PATIENCE_S))
        # As a process that ends does.
        followers[0].close()
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                next(calls.turns(PATIENCE_S))
                break
            except NoRoom:
                assert time.monotonic() < deadline_s
