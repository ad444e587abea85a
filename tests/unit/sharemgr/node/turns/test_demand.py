"""What an allocation is seen to want of a device."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.demand import LIGHT_PART, SEEN_NS, Demand


class Seen:
    """An allocation that is read each millisecond of its own time."""

    def __init__(self) -> None:
        self.demand = Demand()
        self.now_ns = 0

    def uses(self, part: float, for_ns: int, rivals: int = 0) -> Demand:
        """It used so much of the time, for so long, and waited for as many rivals' as long times between."""
        for _ in range(for_ns // MS):
            self.now_ns += MS * (1 + rivals)
            gpu_ns = int(part * MS)
            self.demand.read(gpu_ns, MS - gpu_ns, 0, waits=False, queued=part == 1, now_ns=self.now_ns)
        return self.demand


def seen(part: float, for_ns: int) -> Demand:
    return Seen().uses(part, for_ns)


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
    for wait in range(1000):
        demand.read(0, 0, 0, waits=True, queued=False, now_ns=wait * MS)
    assert not demand.seen_to_leave_gaps


def test_one_that_begins_to_keep_the_device_busy_is_not_seen_to_leave_gaps_any_more() -> None:
    of = Seen()
    of.uses(0.1, S)
    demand = of.uses(1, 60 * MS)
    assert not demand.seen_to_leave_gaps
    assert demand.leaves_gaps


def test_what_one_did_before_it_used_the_device_for_the_first_time_is_no_gap() -> None:
    of = Seen()
    of.uses(0, S)
    demand = of.uses(1, 5 * MS)
    assert not demand.leaves_gaps
    assert demand.usual > 0.2


def test_who_was_idle_for_long_leaves_no_gaps_soon_after_however_many_it_takes_turns_with() -> None:
    for rivals in (0, 7, 63):
        of = Seen()
        of.uses(1, 10 * MS)
        # All of its time since then is read at once, when it asks for the device.
        of.now_ns += 30 * S
        of.demand.read(0, 30 * S, 0, waits=True, queued=False, now_ns=of.now_ns)
        assert of.demand.leaves_gaps
        assert not of.uses(1, 4 * S // (1 + rivals), rivals).leaves_gaps


def test_a_pause_of_the_host_now_and_then_is_no_gap() -> None:
    of = Seen()
    of.uses(1, S)
    demand = of.uses(0, 6 * MS)
    assert demand.recent < LIGHT_PART
    assert not demand.leaves_gaps
    assert not demand.seen_to_leave_gaps


def test_who_pauses_after_it_kept_the_device_busy_is_soon_seen_to_leave_gaps() -> None:
    of = Seen()
    of.uses(1, 10 * S)
    assert of.uses(0.3, 150 * MS).seen_to_leave_gaps
