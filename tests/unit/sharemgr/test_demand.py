"""What an allocation is seen to want of a device."""

from edgeshare.units import NS_PER_MS as MS
from edgeshare.units import NS_PER_S as S
from sharemgr.node.demand import LIGHT_PART, SEEN_NS, Demand


def seen(part: float, for_ns: int) -> Demand:
    """One that has used so much of the time, for so long."""
    demand = Demand()
    for _ in range(for_ns // MS):
        gpu_ns = int(part * MS)
        demand.read(gpu_ns, MS - gpu_ns, 0, waits=False, queued=False)
    return demand


def test_a_stranger_is_not_seen_to_leave_gaps_though_it_is_taken_for_somebody_light() -> None:
    assert Demand().leaves_gaps
    assert not Demand().seen_to_leave_gaps


def test_one_that_pauses_is_seen_to_leave_gaps_once_it_has_been_seen_for_a_few_looks() -> None:
    assert not seen(0.1, SEEN_NS // 4).seen_to_leave_gaps
    assert seen(0.1, SEEN_NS).seen_to_leave_gaps


def test_one_that_is_nearly_full_is_not_seen_to_leave_gaps() -> None:
    almost = seen(LIGHT_PART + 0.05, S)
    assert almost.leaves_gaps
    assert not almost.seen_to_leave_gaps
    assert seen(LIGHT_PART - 0.05, S).seen_to_leave_gaps


def test_nothing_is_seen_of_one_that_waits_at_its_gate() -> None:
    demand = Demand()
    for _ in range(1000):
        demand.read(0, 0, 0, waits=True, queued=False)
    assert not demand.seen_to_leave_gaps


def test_one_that_begins_to_keep_the_device_busy_is_not_seen_to_leave_gaps_any_more() -> None:
    demand = seen(0.1, S)
    for _ in range(60):
        demand.read(MS, 0, 0, waits=False, queued=True)
    assert not demand.seen_to_leave_gaps
    assert demand.leaves_gaps
