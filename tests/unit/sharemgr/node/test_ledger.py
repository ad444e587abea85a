"""Memory: the cap holds exactly, whoever reserves, dies or is measured."""

from collections.abc import Callable

import pytest

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import MIB
from sharemgr.node.memory.entry import Info, Verdict
from sharemgr.node.memory.ledger import ALLOWANCE_BYTES_MAX, Ledger


def test_what_fits_is_granted_and_one_byte_more_is_refused() -> None:
    ledger = Ledger(100)
    assert ledger.reserve(1, 0, 60) == Verdict(True, 100)
    assert ledger.reserve(2, 0, 41) == Verdict(False, 40)
    assert ledger.reserve(2, 0, 40) == Verdict(True, 40)
    assert ledger.reserve(1, 0, 0) == Verdict(True, 0)
    assert ledger.info(0) == Info(100, 100)


def test_what_is_freed_is_free_again() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 0, 100)
    ledger.freed(1, 0, 100)
    assert ledger.reserve(2, 0, 100).granted


def test_each_device_has_the_cap_for_itself() -> None:
    ledger = Ledger(100, devices=2)
    assert ledger.reserve(1, 0, 100).granted
    assert ledger.reserve(1, 1, 100).granted
    assert not ledger.reserve(1, 1, 1).granted
    assert ledger.client_bytes(1) == 200


def test_an_allowance_is_a_fiftieth_of_the_cap_and_64_mib_at_most() -> None:
    ledger = Ledger(1000 * MIB)
    assert ledger.allow(1, 0, 0) == 20 * MIB
    assert ledger.held_bytes(1, 0) == ledger.info(0).used_bytes == 20 * MIB
    assert ledger.allow(1, 0, 15 * MIB) == 5 * MIB
    assert ledger.allow(1, 0, 20 * MIB) == ledger.allow(1, 0, 400 * MIB) == 0
    assert Ledger(80_000 * MIB).allow(1, 0, 0) == ALLOWANCE_BYTES_MAX == 64 * MIB


def test_an_allowance_leaves_most_of_what_is_free_to_others() -> None:
    ledger = Ledger(1000)
    ledger.reserve(1, 0, 960)
    assert ledger.allow(1, 0, 0) == 10
    assert ledger.reserve(2, 0, 30).granted
    assert ledger.allow(1, 0, 0) == 0


def test_what_a_client_has_from_before_counts_also_where_it_does_not_fit() -> None:
    ledger = Ledger(100)
    ledger.declare(1, 0, 130)
    assert ledger.info(0) == Info(100, 130)
    assert ledger.reserve(2, 0, 1) == Verdict(False, 0)
    ledger.freed(1, 0, 40)
    assert ledger.reserve(2, 0, 10).granted


def test_the_memory_of_a_dead_client_counts_until_the_driver_has_freed_it() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 0, 70)
    ledger.client_gone(1)
    assert ledger.dying() == {1: 70}
    assert ledger.reserve(2, 0, 31) == Verdict(False, 30)
    ledger.driver_freed(1)
    assert ledger.dying() == {}
    assert ledger.reserve(2, 0, 100).granted


def test_a_client_that_had_nothing_leaves_nothing() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 0, 50)
    ledger.freed(1, 0, 50)
    ledger.client_gone(1)
    ledger.client_gone(2)
    assert ledger.dying() == {}
    assert ledger.client_bytes(1) == 0


def test_what_a_process_declares_that_is_back_goes_over_to_it_and_is_counted_once() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 0, 70)
    ledger.client_gone(1)
    assert ledger.inherit(2, 1, 0, 50) == 50
    assert ledger.info(0).used_bytes == 70
    assert (ledger.client_bytes(1), ledger.client_bytes(2)) == (20, 50)
    assert ledger.inherit(2, 1, 0, 30) == 20
    assert ledger.inherit(2, 1, 0, 30) == 0
    assert ledger.inherit(1, 2, 0, 30) == 0  # which lives
    assert ledger.client_bytes(2) == ledger.info(0).used_bytes == 70


def test_a_context_goes_over_with_its_part_of_what_the_driver_took() -> None:
    ledger = Ledger(100)
    for _ in range(3):
        ledger.reserve_context(1, 0, 10)
    ledger.client_gone(1)
    assert ledger.inherit_context(2, 1, 0)
    assert (ledger.client_bytes(1), ledger.client_bytes(2)) == (20, 10)
    ledger.context_ended(2, 0, 10)
    assert [ledger.inherit_context(2, 1, 0) for _ in range(3)] == [True, True, False]
    assert ledger.client_bytes(2) == ledger.info(0).used_bytes == 20


def test_what_a_process_without_a_connection_has_is_what_the_driver_says() -> None:
    ledger = Ledger(100)
    ledger.reserve_context(1, 0, 10)
    ledger.reserve(1, 0, 70)
    ledger.driver_says(1, [1])  # it lives
    assert ledger.info(0).used_bytes == 80
    ledger.client_gone(1)
    ledger.driver_says(1, [30])
    assert ledger.dying() == {1: 30}
    assert ledger.inherit_context(2, 1, 0)
    assert ledger.inherit(2, 1, 0, 100) == 20
    assert ledger.info(0).used_bytes == 30


def test_the_driver_frees_nothing_of_a_client_that_lives() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 0, 50)
    ledger.driver_freed(1)
    assert ledger.info(0).used_bytes == 50


def measured(ledger: Ledger, driver_bytes: int, standing_bytes: int = 0) -> int | None:
    """A look at client 1, between the begin and the end of which nothing happens."""
    ledger.look(1, [standing_bytes])
    return ledger.reconcile(1, 0, driver_bytes, standing_bytes)


def test_overhead_lowers_what_is_free_and_takes_nothing_away() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 0, 60)
    measured(ledger, 130)
    assert ledger.info(0) == Info(100, 130)
    assert ledger.info(0).free_bytes == 0
    assert ledger.reserve(1, 0, 1) == Verdict(False, 0)
    ledger.freed(1, 0, 60)
    measured(ledger, 70)
    assert ledger.info(0).used_bytes == 70
    assert ledger.reserve(1, 0, 30).granted


def test_what_stands_in_an_allowance_is_not_known_to_the_driver() -> None:
    ledger = Ledger(1000)
    ledger.reserve(1, 0, 60)
    ledger.reserve(1, 0, 20)
    measured(ledger, 70, standing_bytes=20)
    assert ledger.info(0).used_bytes == 60 + 20 + 10


def test_what_comes_and_goes_while_the_driver_is_asked_is_no_overhead() -> None:
    ledger = Ledger(1000)
    ledger.join(1)
    measured(ledger, 30)
    ledger.reserve(1, 0, 500)
    ledger.look(1, [0])
    ledger.freed(1, 0, 500)
    ledger.reconcile(1, 0, 530, 0)  # the driver was asked before it was freed
    assert ledger.info(0).used_bytes == 30
    ledger.look(1, [0])
    ledger.reserve(1, 0, 500)
    ledger.reconcile(1, 0, 30, 0)  # and before it was taken
    assert ledger.info(0).used_bytes == 530
    ledger.look(1, [0])
    ledger.reserve(1, 0, 100)
    ledger.reconcile(1, 0, 700, 0)  # what it took by itself is at least this much
    assert ledger.info(0).used_bytes == 700


def test_a_client_that_is_gone_or_unknown_or_new_is_not_measured() -> None:
    ledger = Ledger(100)
    ledger.join(3)
    ledger.reserve(1, 0, 10)
    ledger.look(1, [0])
    ledger.client_gone(1)
    for client_id in (1, 2, 3):
        assert ledger.reconcile(client_id, 0, 90, 0) is None
    assert ledger.info(0).used_bytes == 10


def test_a_client_that_never_reserves_is_measured_from_when_it_joined() -> None:
    ledger = Ledger(100)
    ledger.join(1)
    measured(ledger, 30)
    assert ledger.info(0).used_bytes == 30
    ledger.client_gone(1)
    assert ledger.dying() == {1: 30}
    ledger.driver_freed(1)
    assert ledger.info(0).used_bytes == 0


def test_a_context_counts_as_expected_until_it_is_measured() -> None:
    ledger = Ledger(1000)
    assert ledger.reserve_context(1, 0, 300) == Verdict(True, 1000)
    assert ledger.info(0).used_bytes == 300
    assert measured(ledger, 0) is None  # the driver has not made it yet
    assert ledger.info(0).used_bytes == 300
    assert measured(ledger, 280) is None
    assert ledger.info(0).used_bytes == 280
    assert measured(ledger, 280) == 280
    for expected in (280, 0):  # of some programs it never says what they have
        measured(ledger, 0)
        assert ledger.info(0).used_bytes == expected
    assert measured(ledger, 280) is None
    assert ledger.reserve_context(2, 0, 721) == Verdict(False, 720)
    assert ledger.reserve_context(2, 0, 720).granted
    ledger.context_ended(2, 0, 720)
    assert ledger.info(0).used_bytes == 280


def test_only_a_client_with_one_context_from_before_two_looks_says_what_one_takes() -> None:
    ledger = Ledger(1000)
    ledger.join(1)
    assert measured(ledger, 10) is None
    ledger.look(1, [0])
    ledger.reserve_context(1, 0, 0)
    assert ledger.reconcile(1, 0, 150, 0) is None
    assert measured(ledger, 300) is None  # the half of it may have been made
    assert measured(ledger, 300) == 300
    ledger.declare_context(1, 0, 300)
    assert measured(ledger, 600) is None


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (lambda ledger: ledger.reserve(1, 1, 5), "device 1"),
        (lambda ledger: ledger.reserve(1, 0, -1), "-1 bytes"),
        (lambda ledger: ledger.declare(1, 0, -1), "-1 bytes"),
        (lambda ledger: ledger.declare(1, 0, 1 << 60), "no device has that"),
        (lambda ledger: ledger.declare(1, 9, 1), "device 9"),
        (lambda ledger: ledger.freed(1, 0, 11), "of which it holds 10"),
        (lambda ledger: ledger.freed(2, 0, 1), "of which it holds 0"),
        (lambda ledger: ledger.freed(1, 0, -1), "-1 bytes"),
        (lambda ledger: ledger.freed(1, -1, 0), "device -1"),
        (lambda ledger: ledger.context_ended(1, 0, 0), "made none"),
        (lambda ledger: ledger.reserve_context(1, 2, 0), "device 2"),
        (lambda ledger: ledger.info(7), "device 7"),
    ],
)
def test_what_a_client_cannot_mean_is_refused_and_changes_nothing(say: Callable[[Ledger], object], words: str) -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 0, 10)
    with pytest.raises(InvalidRequest, match=words):
        say(ledger)
    assert ledger.info(0).used_bytes == 10
