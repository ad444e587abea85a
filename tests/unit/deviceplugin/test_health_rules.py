"""The rules of health, one by one."""

from dataclasses import replace
from typing import Any

import pytest

from deviceplugin.health.health_config import HealthConfig
from deviceplugin.health.rules import IGNORED_XIDS, PASSING_XIDS, RULES, Settings, health_of, observe, resumed
from deviceplugin.health.state import DoubleBitError, Look, Moment, State, Xid
from edgeshare.contract.health import Answer, Reason
from edgeshare.contract.units import NS_PER_S

SETTINGS = HealthConfig(temperature_limit_c=90).settings()
GOOD = Look("boot-1", Answer(energy_mj=1_000, uncorrected=0, remap_pending=False, remap_failed=False, temperature_c=40))
FILE = "/dev/nvidia0"


def look(boot_id: str = "boot-1", files: frozenset[str] = frozenset(), **said: Any) -> Look:
    assert GOOD.answer is not None
    return Look(boot_id, replace(GOOD.answer, **said), files=files)


def after(*seen: Any, settings: Settings = SETTINGS, step_s: int = 1, state: State | None = None) -> State:
    """The state after these observations, one each ``step_s``; those that go on from a ``state`` are a day later."""
    begin_s = 0 if state is None else 86_400
    state = state or State()
    for number, each in enumerate(seen):
        now_ns = (begin_s + number * step_s) * NS_PER_S
        state = observe(state, each, settings, Moment(now_ns, 1_700_000_000 * NS_PER_S + now_ns))
    return state


def reasons(state: State) -> list[Reason]:
    return [condition.reason for condition in state.conditions]


@pytest.mark.parametrize("number", sorted(IGNORED_XIDS))
def test_an_xid_of_an_application_changes_nothing(number: int) -> None:
    assert after(GOOD, Xid(number)) == after(GOOD)


def test_the_list_of_ignored_xids_is_the_configurations() -> None:
    assert reasons(after(GOOD, Xid(13), settings=HealthConfig(ignored_xids=frozenset({48})).settings())) == [Reason.XID]
    assert reasons(after(GOOD, Xid(48), settings=HealthConfig(ignored_xids=frozenset({48})).settings())) == []


@pytest.mark.parametrize("fault", [Xid(48), Xid(62), Xid(79), Xid(95), Xid(999), DoubleBitError()])
def test_a_fault_that_takes_a_reset_stays_for_ever_without_one(fault: Xid | DoubleBitError) -> None:
    state = after(GOOD, fault, *[look(energy_mj=1_000 + n) for n in range(100)], step_s=86_400)
    assert len(state.conditions) == 1


@pytest.mark.parametrize("fault", [Xid(48), Xid(79), DoubleBitError()])
@pytest.mark.parametrize(
    "first",
    [look(energy_mj=10), look(boot_id="boot-2", energy_mj=10)],
    ids=["its energy counter begins anew", "the machine has booted"],
)
def test_a_fault_is_over_two_good_looks_after_a_reset(fault: Xid | DoubleBitError, first: Look) -> None:
    state = after(GOOD, fault, GOOD, first)
    assert not health_of(state).healthy
    assert first.answer is not None
    second = replace(first, answer=replace(first.answer, energy_mj=20))
    assert health_of(after(second, state=state)).healthy


def test_the_count_of_uncorrected_errors_shows_a_reset_too() -> None:
    state = after(GOOD, look(uncorrected=2), look(uncorrected=0), look(uncorrected=0))
    assert reasons(state) == []


def test_a_reset_before_the_fault_does_not_count() -> None:
    later = [look(energy_mj=20 + n) for n in range(10)]
    assert reasons(after(GOOD, look(energy_mj=10), Xid(79), *later)) == [Reason.FELL_OFF_BUS]
    # Nor one of which it cannot be told whether it was before.
    assert reasons(after(GOOD, Xid(79), *later)) == [Reason.FELL_OFF_BUS]
    assert reasons(after(GOOD, Xid(79), *[look("boot-2", energy_mj=20 + n) for n in range(10)])) == [
        Reason.FELL_OFF_BUS
    ]


def test_a_gpu_that_is_still_lost_after_a_reset_needs_another() -> None:
    lost = Look("boot-2", None, "GPU is lost", lost=True)
    state = after(GOOD, Xid(79), lost, *[look("boot-2", energy_mj=5_000 + n) for n in range(5)])
    assert reasons(state) == [Reason.FELL_OFF_BUS]
    assert reasons(after(look("boot-2", energy_mj=1), look("boot-2", energy_mj=2), state=state)) == []


def test_a_lost_gpu_that_answers_again_without_a_reset_is_not_trusted() -> None:
    state = after(GOOD, Look("boot-1", None, "GPU is lost", lost=True), *[GOOD] * 10)
    assert reasons(state) == [Reason.FELL_OFF_BUS]


def test_a_passing_xid_is_over_when_none_has_come_for_the_time_set() -> None:
    assert reasons(after(GOOD, Xid(94), *[GOOD] * 5, step_s=60)) == [Reason.PASSING_XID]
    assert reasons(after(GOOD, Xid(94), *[GOOD] * 6, step_s=60)) == []


def test_another_passing_xid_begins_the_wait_anew() -> None:
    state = after(GOOD, Xid(94), *[GOOD] * 5, Xid(94), *[GOOD] * 5, step_s=60)
    assert reasons(state) == [Reason.PASSING_XID]


def test_an_unanswering_driver_is_back_after_two_answers_and_not_after_one() -> None:
    away = Look("boot-1", None, "busy")
    assert reasons(after(GOOD, away)) == [Reason.NO_ANSWER]
    assert reasons(after(GOOD, away, GOOD)) == [Reason.NO_ANSWER]
    assert reasons(after(GOOD, away, GOOD, away, GOOD)) == [Reason.NO_ANSWER]
    assert reasons(after(GOOD, away, GOOD, GOOD)) == []


def test_a_file_that_goes_and_comes_back_needs_two_looks() -> None:
    there, gone = look(files=frozenset({FILE})), look()
    assert reasons(after(gone)) == []
    assert health_of(after(there, gone)).message == f"{FILE} is gone"
    assert reasons(after(there, gone, there)) == [Reason.DEVICE_FILE_GONE]
    assert reasons(after(there, gone, there, there)) == []


def test_a_file_may_have_another_name_after_a_reset() -> None:
    other = look("boot-2", files=frozenset({"/dev/nvidia1"}))
    assert reasons(after(look(files=frozenset({FILE})), other)) == []


def test_heat_is_over_below_the_limit_by_the_margin_for_the_time_set() -> None:
    hot, warm, cool = look(temperature_c=90), look(temperature_c=85), look(temperature_c=84)
    assert reasons(after(look(temperature_c=89))) == []
    assert reasons(after(hot)) == [Reason.TOO_HOT]
    assert reasons(after(hot, *[warm] * 100)) == [Reason.TOO_HOT]
    assert reasons(after(hot, *[cool] * 60)) == [Reason.TOO_HOT]
    assert reasons(after(hot, *[cool] * 61)) == []
    assert reasons(after(hot, *[cool] * 59, warm, *[cool] * 59)) == [Reason.TOO_HOT]


def test_without_a_limit_no_temperature_counts() -> None:
    assert reasons(after(look(temperature_c=120), settings=HealthConfig().settings())) == []


def test_what_the_driver_does_not_say_is_no_good_news() -> None:
    silent = look(temperature_c=None)
    assert reasons(after(look(temperature_c=95), *[silent] * 100)) == [Reason.TOO_HOT]
    mute = look(remap_failed=None)
    assert reasons(after(look(remap_failed=True), *[mute] * 100)) == [Reason.ROW_REMAP_FAILED]


def test_memory_errors_of_before_the_first_look_do_not_count_and_those_of_later_do() -> None:
    assert reasons(after(look(uncorrected=3), look(uncorrected=3))) == []
    assert reasons(after(look(uncorrected=3), look(uncorrected=4))) == [Reason.UNCORRECTABLE_ECC]
    # Not those of before a boot, but those since.
    assert reasons(after(look(uncorrected=3), look("boot-2", uncorrected=1))) == [Reason.UNCORRECTABLE_ECC]


def test_a_pending_remapping_counts_where_the_configuration_says_so() -> None:
    pending = look(remap_pending=True)
    assert reasons(after(GOOD, pending)) == []
    counts = HealthConfig(pending_remap_counts=True).settings()
    assert reasons(after(GOOD, pending, settings=counts)) == [Reason.ROW_REMAP_PENDING]
    assert reasons(after(GOOD, pending, GOOD, GOOD, settings=counts)) == []


def test_a_remapping_that_is_done_shows_a_reset() -> None:
    pending = look(remap_pending=True)
    assert reasons(after(GOOD, Xid(48), pending, pending)) == [Reason.XID]
    assert reasons(after(GOOD, Xid(48), pending, GOOD, GOOD)) == []


def test_the_gravest_reason_is_named_and_all_are_told() -> None:
    health = health_of(after(GOOD, Xid(94), look(temperature_c=95), Xid(79)))
    assert (health.reason, health.source) == (Reason.FELL_OFF_BUS, "driver-event")
    assert health.message == "XID 79; 95 °C, the limit is 90; XID 94"
    assert health.since_unix_ns == 1_700_000_001 * NS_PER_S
    assert str(health) == (
        "not healthy: XID 79; 95 °C, the limit is 90; XID 94 (driver-event, since 2023-11-14T22:13:21Z); "
        "healthy again after a reset of the GPU or a reboot"
    )


def test_a_restart_forgets_waits_and_no_condition() -> None:
    state = after(look(temperature_c=95), *[look(temperature_c=40)] * 50)
    assert reasons(after(look(temperature_c=40), state=state)) == []
    again = resumed(state)
    assert reasons(again) == [Reason.TOO_HOT]
    assert reasons(after(*[look(temperature_c=40)] * 60, state=again)) == [Reason.TOO_HOT]
    assert reasons(after(*[look(temperature_c=40)] * 61, state=again)) == []


def test_every_reason_has_a_rule_and_no_xid_is_in_two_lists() -> None:
    assert set(RULES) == set(Reason)
    assert all(rule.until and rule.why for rule in RULES.values())
    assert not PASSING_XIDS & IGNORED_XIDS
    assert 79 not in PASSING_XIDS | IGNORED_XIDS
