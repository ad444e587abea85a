"""Grants and their numbers, of one client and of several: who gets one, what a release answers, and what is ignored."""

from collections.abc import Callable

import pytest

from edgeshare.contract.errors import AlreadyExists, NotFound
from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import MAX_NUMBER, Grant, Revoke
from sharemgr.node.turns.settings import Share
from tests.kit.arbiter.device import device


def test_the_first_that_asks_gets_the_device_uncontended_and_without_an_end() -> None:
    arbiter = device(a=50, b=50)
    assert arbiter.request("a", 1, 10) == [Grant("a", 1, False)]
    assert arbiter.deadline_ns() is None
    assert arbiter.account("a", 20).state is State.HOLDING


def test_an_idle_device_is_given_to_whoever_asks_next() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    assert arbiter.release("a", 1, 1, MS, False, MS) == []
    assert arbiter.account("a", MS).state is State.IDLE
    assert arbiter.deadline_ns() == MS + 300 * US  # until then it may be thinking
    assert arbiter.tick(MS + 300 * US) == []
    assert arbiter.request("b", 1, 2 * MS) == [Grant("b", 2, True)]


@pytest.mark.parametrize("number", [0, 1, 3, 4, -1, MAX_NUMBER, MAX_NUMBER + 3])
def test_a_release_with_another_number_than_the_grants_is_ignored(number: int) -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.tick(5 * MS)
    arbiter.release("a", 1, 1, MS, True, 5 * MS)
    assert arbiter.account("b", 5 * MS).state is State.HOLDING
    assert arbiter.release("b", 1, number, MS, True, 6 * MS) == []
    assert arbiter.usage("b", 1, number, MS, 6 * MS) == []
    assert arbiter.account("b", 6 * MS).state is State.HOLDING
    assert arbiter.account("b", 6 * MS).gpu_ns == 0


def test_a_release_counts_once() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.release("a", 1, 1, MS, False, 2 * MS)
    arbiter.request("a", 1, 3 * MS)
    assert arbiter.release("a", 1, 1, MS, False, 4 * MS) == []
    assert arbiter.account("a", 4 * MS).state is State.HOLDING


def test_what_comes_from_nobody_known_is_ignored() -> None:
    arbiter = device(a=50)
    for events in (arbiter.request, arbiter.gone):
        assert events("a", 2, 0) == []
        assert events("z", 1, 0) == []
    assert arbiter.release("a", 2, 1, 0, False, 0) == []
    assert arbiter.usage("z", 1, 1, 0, 0) == []
    assert arbiter.remove("z", 0) == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda arbiter: arbiter.add("a", Share(1, 100), 0), AlreadyExists),
        (lambda arbiter: arbiter.join("a", 1, 0), AlreadyExists),
        (lambda arbiter: arbiter.join("z", 1, 0), NotFound),
        (lambda arbiter: arbiter.update("z", Share(1, 100), 0), NotFound),
        (lambda arbiter: arbiter.account("z", 0), NotFound),
    ],
)
def test_what_cannot_be_is_refused(call: Callable[[Arbiter], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(device(a=50))


def test_a_grant_opens_all_clients_that_ever_asked_and_has_drained_when_all_have() -> None:
    arbiter = device(a=50, b=50)
    arbiter.join("a", 2, 0)
    arbiter.join("a", 3, 0)  # never asks
    arbiter.request("a", 1, 0)
    assert arbiter.request("a", 2, 0) == [Grant("a", 2, False)]
    arbiter.request("b", 1, 0)
    assert arbiter.tick(5 * MS) == [Revoke("a", 2)]
    assert arbiter.release("a", 1, 1, MS, True, 6 * MS) == []
    assert arbiter.release("a", 2, 2, MS, True, 7 * MS) == [Grant("b", 3, True)]
    assert arbiter.account("a", 7 * MS).gpu_ns == 2 * MS


def test_a_client_of_several_may_release_and_come_in_again_while_the_others_hold() -> None:
    arbiter = device(a=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.request("a", 2, 0)
    assert arbiter.release("a", 1, 1, MS, False, MS) == []
    assert arbiter.request("a", 1, 2 * MS) == [Grant("a", 3, False)]
    assert arbiter.release("a", 1, 1, MS, False, 3 * MS) == []  # the number that it has released already
    assert arbiter.release("a", 2, 2, MS, False, 3 * MS) == []
    assert arbiter.account("a", 3 * MS).state is State.HOLDING
    arbiter.release("a", 1, 3, MS, False, 3 * MS)
    assert arbiter.account("a", 3 * MS).state is State.IDLE


def test_gates_that_were_opened_for_another_clients_work_do_not_keep_the_device() -> None:
    arbiter = device(a=50, b=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.request("a", 2, 0)
    arbiter.release("a", 1, 1, MS, False, MS)
    arbiter.release("a", 2, 2, MS, False, MS)
    assert arbiter.request("a", 1, 2 * MS) == [Grant("a", 3, False)]
    arbiter.request("b", 1, 2 * MS)
    # The second client's gate is open too, but it has not asked.
    assert arbiter.release("a", 1, 3, MS, False, 3 * MS) == [Revoke("a", 3)]
    assert arbiter.release("a", 2, 3, 0, False, 3 * MS) == []
    assert arbiter.account("a", 3 * MS).state is State.IDLE


def test_numbers_begin_again_after_the_last_that_fits_the_gate() -> None:
    arbiter = device(a=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.release("a", 1, 1, 0, False, 0)
    arbiter._mode.grants._numbers.last = MAX_NUMBER - 1
    assert arbiter.request("a", 1, 1) == [Grant("a", MAX_NUMBER, False)]
    assert arbiter.request("a", 2, 2) == [Grant("a", 1, False)]
    arbiter.release("a", 2, 1, 0, False, 3)
    # The first may answer the number that it was given, or the later one.
    arbiter.release("a", 1, 1, 0, False, 3)
    assert arbiter.account("a", 3).state is State.IDLE
