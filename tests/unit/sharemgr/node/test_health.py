"""Which of two opinions of a device's health is shown."""

import pytest

from edgeshare.contract.devices import Device
from sharemgr.node.machine.observer import CAUSE_CHARACTERS, FRESH_NS, ToldHealth

SOUND = Device("GPU-a", 0, "m", 1)
ILL = Device("GPU-a", 0, "m", 1, healthy=False, cause="XID 62, as the manager saw it")


@pytest.mark.parametrize("seen", [SOUND, ILL])
def test_what_was_told_goes_before_what_the_manager_sees(seen: Device) -> None:
    told = ToldHealth()
    told.tell({"GPU-a": "it is too hot"}, now_ns=7)
    assert (told.of(seen, 7).healthy, told.of(seen, 7).cause) == (False, "it is too hot")
    told.tell({"GPU-a": ""}, now_ns=8)
    assert told.of(seen, 8) == SOUND


def test_what_was_not_told_anew_holds_no_longer() -> None:
    told = ToldHealth()
    told.tell({"GPU-a": ""}, now_ns=7)
    assert told.of(ILL, 6 + FRESH_NS) == SOUND
    assert told.of(ILL, 7 + FRESH_NS) == ILL


def test_a_device_of_which_nothing_was_told_is_as_the_manager_sees_it() -> None:
    told = ToldHealth()
    assert told.of(ILL, 7) == ILL
    told.tell({"GPU-a": ""}, now_ns=7)
    told.tell({"GPU-b": ""}, now_ns=8)
    assert told.of(ILL, 8) == ILL


def test_a_cause_is_one_line_of_some_length() -> None:
    told = ToldHealth()
    told.tell({"GPU-a": "too hot\n\x1b[2J" + "!" * 3_000_000}, now_ns=7)
    cause = told.of(SOUND, 7).cause
    assert cause.startswith("too hot  [2J!!!")
    assert len(cause) == CAUSE_CHARACTERS
    told.tell({"GPU-a": "\n"}, now_ns=8)
    assert not told.of(SOUND, 8).healthy
