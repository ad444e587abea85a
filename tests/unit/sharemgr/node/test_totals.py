"""Sums that never fall, and whose a device's energy is."""

import pytest

from edgeshare.contract.units import NS_PER_S
from sharemgr.node.machine.allocations import Allocation
from sharemgr.node.machine.observer import Observation
from sharemgr.node.totals import Totals
from sharemgr.node.turns.account import Account, State

IDLE_MW, BUSY_MW = 7_000, 70_000


def account(held_s: float = 0, gpu_s: float = 0, waited_s: float = 0) -> Account:
    return Account(
        state=State.IDLE,
        overlapping=False,
        throttled=False,
        held_ns=0,
        gpu_ns=0,
        waited_ns=0,
        all_held_ns=round(held_s * NS_PER_S),
        all_gpu_ns=round(gpu_s * NS_PER_S),
        all_waited_ns=round(waited_s * NS_PER_S),
        waiting_ns=0,
        longest_wait_ns=0,
        grants=0,
        overruns=0,
        holding_ns=0,
        beside=False,
        usual_part=0,
        lag_ns=0,
    )


def allocation(name: str, percent: int = 50, *devices: str) -> Allocation:
    return Allocation(name, devices or ("GPU-a",), percent)


class Device:
    """A device that takes so much while it runs something and while it does not, looked at each second."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.energy_mj = 1_000_000.0
        self._now_s = 100.0
        self._used_s: dict[str, float] = {}

    def second(self, allocations: list[Allocation], seconds: float = 1, **used_s: float) -> None:
        """Some time goes by in which allocations used the device for so long."""
        self._now_s += seconds
        busy_s = sum(used_s.values())
        self.energy_mj += BUSY_MW * busy_s + IDLE_MW * (seconds - busy_s)
        for name, more_s in used_s.items():
            self._used_s[name] = self._used_s.get(name, 0) + more_s
            self.totals.take_in(name, account(gpu_s=self._used_s[name]), exclusive=False)
        self.look(allocations)

    def look(self, allocations: list[Allocation]) -> None:
        energy_mj = {"GPU-a": round(self.energy_mj)}
        seen = Observation(round(self._now_s * NS_PER_S), (), {}, {}, {}, energy_mj=energy_mj)
        self.totals.look(seen, allocations)

    def gone(self, name: str) -> None:
        self.totals.forget(name)
        del self._used_s[name]

    def joules(self, name: str) -> float:
        return self.totals.take_in(name, account(), exclusive=False).energy_mj["GPU-a"] / 1000


@pytest.fixture
def device() -> Device:
    device = Device()
    device.look([])
    return device


BOTH = [allocation("one"), allocation("two")]


def test_no_sum_falls_where_an_account_takes_something_back() -> None:
    totals = Totals()
    totals.take_in("one", account(3, 2, 5), exclusive=False)
    total = totals.take_in("one", account(2, 1, 4.5), exclusive=False)
    assert (total.held_ns, total.gpu_ns, total.waited_ns) == (3 * NS_PER_S, 2 * NS_PER_S, 5 * NS_PER_S)
    totals.forget("one")
    assert totals.take_in("one", account(1, 0, 0), exclusive=False).held_ns == NS_PER_S


def test_of_an_exclusive_device_all_that_is_held_is_used() -> None:
    assert Totals().take_in("one", account(held_s=3, gpu_s=0), exclusive=True).gpu_ns == 3 * NS_PER_S


def test_what_a_device_takes_while_it_works_is_of_those_for_whom_it_does(device: Device) -> None:
    device.second([])
    for _ in range(10):
        device.second(BOTH, one=0.25, two=0.05)
    device.second(BOTH)
    assert device.joules("one") == pytest.approx(2.5 * BUSY_MW / 1000)
    assert device.joules("two") == pytest.approx(0.5 * BUSY_MW / 1000)


def test_before_it_was_seen_idle_it_takes_all_the_time_what_it_takes_on_the_mean(device: Device) -> None:
    device.second(BOTH, one=0.25, two=0.25)
    mean_mj = (BUSY_MW + IDLE_MW) / 2
    assert device.joules("one") == device.joules("two") == pytest.approx(0.25 * mean_mj / 1000)


def test_a_stranger_that_is_seen_alone_does_not_become_what_a_device_takes_idle(device: Device) -> None:
    device.second([])
    device.second([], stranger=1)
    device.second(BOTH, one=0.5)
    assert device.joules("one") == pytest.approx(0.5 * BUSY_MW / 1000)


def test_no_more_is_divided_than_was_consumed_where_more_gpu_time_is_told_than_went_by(device: Device) -> None:
    before_mj = device.energy_mj
    device.second(BOTH, seconds=0.9, one=0.6, two=0.6)
    spent_mj = device.energy_mj - before_mj
    assert device.joules("one") + device.joules("two") == pytest.approx(spent_mj / 1000)


def test_who_has_a_device_whole_has_all_of_its_energy_from_when_it_was_there(device: Device) -> None:
    whole = allocation("whole", 100, "GPU-a", "GPU-b")
    device.second([whole])
    device.second([whole])
    device.second([whole], whole=0.5)
    assert device.joules("whole") == pytest.approx((1.5 * IDLE_MW + 0.5 * BUSY_MW) / 1000)


def test_a_driver_that_begins_anew_takes_nothing_from_anybody(device: Device) -> None:
    device.second([])
    device.second(BOTH, one=0.5)
    device.energy_mj = 0
    device.second(BOTH, one=0.5)
    assert device.joules("one") == pytest.approx(0.5 * BUSY_MW / 1000)
    device.second(BOTH, one=0.5)
    assert device.joules("one") == pytest.approx(BUSY_MW / 1000)


def test_one_that_comes_by_the_name_of_another_begins_at_nothing(device: Device) -> None:
    device.second([])
    device.second(BOTH, one=0.5)
    device.gone("one")
    device.second(BOTH, one=0.1)
    assert device.joules("one") == 0


def test_of_a_device_whose_driver_does_not_tell_nothing_is_said() -> None:
    totals = Totals()
    totals.look(Observation(0, (), {}, {}, {}), BOTH)
    assert totals.take_in("one", account(), exclusive=False).energy_mj == {}
