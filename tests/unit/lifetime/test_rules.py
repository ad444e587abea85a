"""How long an allocation lasts, and whose its units may become: the rules that plugin and manager share."""

import pytest

from edgeshare.contract.lifetime import (
    ABSENT,
    AT_THE_MANAGER,
    AT_THE_PLUGIN,
    Doubt,
    State,
    Taking,
    goes_on,
    has_ended,
    lasts_unasked,
    state_at_the_plugin,
    taking,
)


@pytest.mark.parametrize("table", [AT_THE_PLUGIN, AT_THE_MANAGER])
def test_each_state_is_reached_and_left_until_nothing_is_there(table: dict[tuple[State, State], str]) -> None:
    states = {state for way in table for state in way}

    def reached(ways: set[tuple[State, State]]) -> set[State]:
        found = {ABSENT}
        while more := {after for before, after in ways if before in found} - found:
            found |= more
        return found

    assert reached(set(table)) == states
    assert reached({(after, before) for before, after in table}) == states


def test_every_state_is_in_a_table() -> None:
    assert {state for way in (*AT_THE_PLUGIN, *AT_THE_MANAGER) for state in way} == set(State)


def test_what_the_plugin_knows_of_an_allocation_is_its_state() -> None:
    assert state_at_the_plugin(has_owner=False, has_terms=False) is State.HANDED_OUT
    assert state_at_the_plugin(has_owner=True, has_terms=False) is State.OWNED
    assert state_at_the_plugin(has_owner=True, has_terms=True) is State.SERVED


@pytest.mark.parametrize("doubt", Doubt)
@pytest.mark.parametrize("pod_is_over", [False, None, True])
def test_an_allocation_with_clients_lasts(doubt: Doubt, pod_is_over: bool | None) -> None:
    assert not has_ended(doubt, has_clients=True, pod_is_over=pod_is_over)


@pytest.mark.parametrize(
    ("doubt", "there", "unknown", "over"),
    [
        (Doubt.MISSING, False, False, True),
        (Doubt.UNCLAIMED, False, False, True),
        (Doubt.OFFERED, False, True, True),
        (Doubt.SUPERSEDED, True, True, True),
    ],
)
def test_without_clients_it_lasts_as_long_as_its_pod(doubt: Doubt, there: bool, unknown: bool, over: bool) -> None:
    ended = [has_ended(doubt, has_clients=False, pod_is_over=is_over) for is_over in (False, None, True)]
    assert ended == [there, unknown, over]


def test_while_nobody_can_be_asked_what_an_init_container_did_not_start_with_goes_on_to_others() -> None:
    assert lasts_unasked(has_owner=True, whose_is_listed=False)
    assert lasts_unasked(has_owner=False, whose_is_listed=True)
    assert not lasts_unasked(has_owner=False, whose_is_listed=False)


@pytest.mark.parametrize("is_same", [False, True])
@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("is_idle", [False, True])
def test_units_go_on_within_a_pod_alone(is_same: bool, is_listed: bool, is_idle: bool) -> None:
    assert not goes_on(is_beside=False, is_same_container=is_same, is_listed=is_listed, is_idle=is_idle)


def test_units_of_an_init_container_go_on_and_those_of_others_come_back_to_them_unless_they_run() -> None:
    assert goes_on(is_beside=True, is_same_container=False, is_listed=False, is_idle=False)
    assert goes_on(is_beside=True, is_same_container=True, is_listed=True, is_idle=True)
    assert not goes_on(is_beside=True, is_same_container=True, is_listed=True, is_idle=False)
    assert not goes_on(is_beside=True, is_same_container=False, is_listed=True, is_idle=True)


def test_just_the_units_of_an_allocation_are_taken_again_by_its_container_or_over_where_nobody_had_started() -> None:
    assert taking(is_same_container=True, has_owner=True, may_be_of_one_pod=True) is Taking.AGAIN
    assert taking(is_same_container=False, has_owner=False, may_be_of_one_pod=True) is Taking.OVER
    assert taking(is_same_container=False, has_owner=False, may_be_of_one_pod=False) is Taking.NEW
    assert taking(is_same_container=False, has_owner=True, may_be_of_one_pod=True) is Taking.NEW
