"""When a replica beside a kube-scheduler leads, by what is seen of that one's Lease, in told time."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from sharemgr.cluster.config import Config
from sharemgr.cluster.replica import leading
from sharemgr.cluster.replica.leading import TIMES, Leading
from sharemgr.cluster.replica.lease import LeaseTimes

OURS, AGAIN, OTHERS = f"{os.uname().nodename}_1", f"{os.uname().nodename}_2", "another_1"
HAND_OVER_S = TIMES.lease_s - TIMES.renew_s


class Clock:
    """A loop's timers, and the monotonic clock."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self._timers: list[Timer] = []

    def call_later(self, delay_s: float, callback: Callable[..., None], *arguments: Any) -> "Timer":
        self._timers.append(Timer(self.now_s + delay_s, callback, arguments))
        return self._timers[-1]

    def go_on(self, seconds: float) -> None:
        """Time passes, and what was to happen happens."""
        self.now_s += seconds
        due = [timer for timer in self._timers if timer.at_s <= self.now_s]
        self._timers = [timer for timer in self._timers if timer.at_s > self.now_s]
        for timer in due:
            if not timer.cancelled:
                timer.callback(*timer.arguments)


class Timer:
    def __init__(self, at_s: float, callback: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.at_s, self.callback, self.arguments, self.cancelled = at_s, callback, arguments, False

    def cancel(self) -> None:
        self.cancelled = True


class Replica:
    """One that sees a Lease."""

    def __init__(self, clock: Clock, times: LeaseTimes = TIMES) -> None:
        self.leading = Leading()
        self.clock = clock
        self.beside = leading._Beside(self.leading, clock, times)  # type: ignore[arg-type]

    def sees(self, holder: str, after_s: float = 0) -> bool:
        """Whether it leads when it has seen this."""
        self.clock.go_on(after_s)
        self.beside.renewed_by(holder)
        return self.leads

    @property
    def leads(self) -> bool:
        return self.leading.term is not None and self.leading.term.holds


@pytest.fixture
def replica(monkeypatch: pytest.MonkeyPatch) -> Replica:
    clock = Clock()
    monkeypatch.setattr(leading, "monotonic", lambda: clock.now_s)
    return Replica(clock)


def test_it_leads_as_long_as_the_lease_is_renewed(replica: Replica) -> None:
    assert replica.sees(OURS, HAND_OVER_S)
    for _ in range(10):
        assert replica.sees(OURS, TIMES.renew_s - 0.1)
    replica.clock.go_on(TIMES.renew_s)
    assert not replica.leads


def test_one_that_was_stopped_past_its_time_leads_no_more_before_anything_tells_it(replica: Replica) -> None:
    assert replica.sees(OURS, HAND_OVER_S)
    replica.clock.now_s += TIMES.renew_s
    assert not replica.leads


@pytest.mark.parametrize("between", [(), ("",)], ids=["taken", "given away"])
def test_after_another_it_leads_only_when_what_that_one_asked_for_is_over(
    replica: Replica, between: tuple[str, ...]
) -> None:
    assert not replica.sees(OTHERS, HAND_OVER_S)
    for holder in between:
        assert not replica.sees(holder)
    assert not replica.sees(OURS)
    assert not replica.sees(OURS, HAND_OVER_S - 0.1)
    assert replica.sees(OURS, 0.1)


def test_at_its_start_it_does_not_know_whose_it_was(replica: Replica) -> None:
    assert not replica.sees(OURS)
    assert replica.sees(OURS, HAND_OVER_S)


def test_a_scheduler_that_begins_again_in_the_same_pod_waits_for_nobody(replica: Replica) -> None:
    assert replica.sees(OURS, HAND_OVER_S)
    assert not replica.sees("")
    assert replica.sees(AGAIN)


def test_another_takes_it_away_at_once(replica: Replica) -> None:
    assert replica.sees(OURS, HAND_OVER_S)
    assert not replica.sees(OTHERS)
    assert replica.leading.holder == OTHERS


def test_another_that_renews_it_no_more_is_forgotten(replica: Replica) -> None:
    replica.sees(OTHERS)
    replica.sees(OTHERS, TIMES.lease_s - 1)
    replica.clock.go_on(TIMES.lease_s - 1)
    assert replica.leading.holder == OTHERS
    replica.clock.go_on(1)
    assert replica.leading.holder == ""


def test_the_wait_is_longer_than_a_binding_may_take() -> None:
    Config(bind_timeout_s=HAND_OVER_S - 0.1)
    with pytest.raises(ValidationError, match="bind_timeout_s"):
        Config(bind_timeout_s=HAND_OVER_S)
