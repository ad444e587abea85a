"""Where switches are dear it is turns as soon as somebody has less side by side than by turns, and only then."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.beside.rule import Gates
from sharemgr.node.turns.gate import Gate, Rule
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.share.standing import Standing

SETTINGS = Settings()
SLICE_NS = SETTINGS.slice_ns


class Device:
    """One that never pauses and one that does, with half of the device each, looked at each slice."""

    def __init__(self) -> None:
        self.gates = Gates(SETTINGS, Rule(), 0)
        self.gates.switch_ns = 200 * US
        self.full, self.half = (Gate(Standing(Share(50, 100), SETTINGS, 0), SETTINGS) for _ in range(2))
        self.now_ns = 0

    def take_turns(self, full: float, half: float, for_ns: int, *, full_idle_ns: int = 0) -> None:
        """By turns they use such parts of the device; the second would use half of it alone, and the first all of it
        but for what it is idle in a slice."""
        for _ in range(for_ns // SLICE_NS):
            self.now_ns += SLICE_NS
            used_ns = int(full * SLICE_NS), int(half * SLICE_NS)
            self.full.demand.read(used_ns[0], full_idle_ns, 0, waits=False, queued=True, now_ns=self.now_ns)
            self.half.demand.read(used_ns[1], used_ns[1], 0, waits=False, queued=False, now_ns=self.now_ns)
            for gate in (self.full, self.half):
                self.gates.report(gate, self.now_ns)

    def begin(self) -> None:
        self.gates.begin([self.full, self.half], 0, self.now_ns)
        for gate in (self.full, self.half):
            gate.wake(self.now_ns)
            gate.demand.used = max(gate.demand.used * min(1, gate.demand.usual), gate.had_by_turns)

    def look(
        self, full_ns: int = 0, running_ns: int = 0, half_ns: int = 0, *, full_idle_ns: int = 0, waits: bool = False
    ) -> bool:
        """A slice passes in which they used so much, a kernel of the first has run for so long, and the second was
        kept out; whether it is turns then."""
        self.now_ns += SLICE_NS
        self.full.demand.read(
            full_ns, full_idle_ns, 0, waits=False, queued=True, running_ns=running_ns, now_ns=self.now_ns
        )
        self.half.demand.read(half_ns, half_ns, 0, waits=waits, queued=half_ns > 0, now_ns=self.now_ns)
        self.full.open, self.half.open = True, not waits
        self.gates.settle(self.now_ns)
        self.gates.look(self.now_ns, whole=True)
        return self.gates.in_turns


def test_one_whose_long_kernel_runs_does_not_lack_what_is_in_no_counter_yet() -> None:
    device = Device()
    device.take_turns(0.5, 0.25, S)
    device.begin()
    for look in range(1, 1000):
        # It takes twenty slices and half of the device.
        ran_ns = (look % 20) * SLICE_NS // 2
        assert not device.look(0 if ran_ns else 10 * SLICE_NS, ran_ns, SLICE_NS // 4)


def test_one_that_has_much_less_than_its_request_soon_takes_turns() -> None:
    device = Device()
    device.take_turns(0.5, 0.25, S)
    device.begin()
    assert any(device.look(full_ns=SLICE_NS * 4 // 10, half_ns=SLICE_NS // 2) for _ in range(300))


def test_one_that_has_much_less_while_the_other_is_kept_out_takes_turns_too() -> None:
    device = Device()
    device.take_turns(0.5, 0.25, S)
    device.begin()
    assert any(device.look(full_ns=SLICE_NS * 3 // 10, waits=True) for _ in range(200))


def lacks_with(by_turns: float) -> bool:
    """The second has a seventh of the device less than it is due, and had so much by the turns that were before."""
    device = Device()
    device.take_turns(0.5, by_turns, S)
    device.begin()
    return any(device.look(full_ns=SLICE_NS * 6 // 10, half_ns=SLICE_NS * 20 // 100) for _ in range(400))


def test_one_that_had_less_by_turns_does_not_go_back_to_them() -> None:
    assert not lacks_with(0.1)
    assert lacks_with(0.24)


def test_what_one_has_by_turns_is_that_of_the_last_seconds_in_which_it_had_work() -> None:
    device = Device()
    device.take_turns(0.5, 0.4, 20 * S)
    device.take_turns(0.5, 0.1, 6 * S)
    device.begin()
    assert 0.1 <= device.half.by_turns < 0.17
    device = Device()
    device.take_turns(0.5, 0, 20 * S)
    device.take_turns(0.5, 0.2, S)
    device.begin()
    assert 0.19 < device.half.by_turns <= 0.21


def test_turns_that_lasted_for_a_moment_tell_nothing() -> None:
    device = Device()
    device.take_turns(0.5, 0, 20 * S)
    device.take_turns(0.5, 0.2, 300 * MS)
    device.begin()
    assert device.half.by_turns == -1


def more_by_turns(full: float, half: float, *, room: bool = False) -> bool:
    """By turns they had such parts, and now the first has six tenths, all that it wants where there is room, and the
    second three, a fifth more than its part: whether it is turns again."""
    device = Device()
    used_ns, idle_ns = 6 * SLICE_NS // 10, 9 * SLICE_NS // 10 if room else 0
    device.take_turns(full, half, S, full_idle_ns=idle_ns)
    device.begin()
    return any(device.look(used_ns, half_ns=3 * SLICE_NS // 10, full_idle_ns=idle_ns) for _ in range(400))


def test_nobody_has_less_than_turns_gave_it_where_not_all_have_room() -> None:
    assert more_by_turns(0.5, 0.4)
    assert not more_by_turns(0.5, 0.3)
    assert not more_by_turns(0.5, 0.4, room=True)


def test_it_is_not_turns_for_one_where_another_had_less_than_its_part_by_them() -> None:
    assert not more_by_turns(0.2, 0.4)
