"""The bound of the rule: −q < lag ≤ q, whatever the number of allocations, and who wakes meanwhile."""

from dataclasses import dataclass
from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Command, Grant, Prolong, Revoke
from sharemgr.node.turns.settings import Settings, Share
from tests.kit.properties.examples import examples

SETTINGS = Settings()
TICK_LATE_NS = 50 * US
ROUNDING_NS = 1000
HAND_OVER_MOST_NS = SETTINGS.slice_ns // 10


@dataclass(frozen=True)
class Rival:
    request_percent: int
    drains_ns: tuple[int, ...]  # in turn: how long it takes to drain once it is revoked


@st.composite
def rivals(draw: st.DrawFn) -> list[Rival]:
    count = draw(st.integers(2, 24))
    weights = draw(st.lists(st.integers(1, 50), min_size=count, max_size=count))
    most = max(1, 100 // sum(weights)) if sum(weights) <= 100 else 1
    drains = st.lists(st.integers(0, 15 * MS), min_size=1, max_size=4).map(tuple)
    left_percent, drawn = 100, []
    for weight in weights:
        request_percent = min(weight * most, left_percent)
        if request_percent:
            drawn.append(Rival(request_percent, draw(drains)))
        left_percent -= request_percent
    return drawn


def slice_ns(hand_over_ns: int, count: int) -> int:
    """The longest; one alone that says how long hand-overs take is not believed."""
    return max(SETTINGS.slice_ns, min(40 * hand_over_ns, 2 * SETTINGS.slice_ns)) if count > 1 else SETTINGS.slice_ns


@given(rivals=rivals(), late_ns=st.integers(0, TICK_LATE_NS), hand_over_ns=st.integers(0, HAND_OVER_MOST_NS))
@settings(max_examples=examples(120))
def test_no_lag_leaves_its_bound(rivals: list[Rival], late_ns: int, hand_over_ns: int) -> None:
    arbiter = Arbiter(SETTINGS)
    by_name = {f"a{index}": rival for index, rival in enumerate(rivals)}
    whole_percent = sum(rival.request_percent for rival in rivals)
    longest_ns = max(max(rival.drains_ns) for rival in rivals)
    turn_ns = slice_ns(hand_over_ns, len(rivals)) + longest_ns + late_ns  # q
    for name, rival in by_name.items():
        arbiter.add(name, Share(rival.request_percent, 100), 0)
        arbiter.join(name, 1, 0)
        arbiter.hand_over(name, hand_over_ns)
    commands = [command for name in by_name for command in arbiter.request(name, 1, 0)]
    holder = next(command for command in commands if isinstance(command, Grant))
    turns = dict.fromkeys(by_name, 0)
    now_ns = 0
    # Turns that cost more than theirs usually do: each rival's, once. A renewed slice is a turn with no drain.
    surprises_ns = sum(max(each.drains_ns) for each in rivals)
    # Nobody is charged for hand-overs, once the turn that they began is over.
    upper_ns = {
        name: turn_ns
        + (surprises_ns - max(rival.drains_ns) + hand_over_ns) * rival.request_percent // whole_percent
        + ROUNDING_NS
        for name, rival in by_name.items()
    }

    def check() -> None:
        for name, most_ns in upper_ns.items():
            assert -turn_ns - ROUNDING_NS < arbiter.account(name, now_ns).lag_ns <= most_ns

    for _ in range(400):
        deadline_ns = arbiter.deadline_ns()
        assert deadline_ns is not None or len(rivals) == 1
        if deadline_ns is None:
            return
        now_ns = max(now_ns, deadline_ns) + late_ns
        ticked = arbiter.tick(now_ns)
        check()
        if ticked and ticked != [Prolong(holder.allocation_id, holder.number)]:
            name = holder.allocation_id
            assert ticked == [Revoke(name, holder.number)]
            drains_ns = by_name[name].drains_ns
            now_ns += drains_ns[turns[name] % len(drains_ns)]
            turns[name] += 1
            [granted] = arbiter.release(name, 1, holder.number, SETTINGS.slice_ns - hand_over_ns, True, now_ns)
            assert isinstance(granted, Grant)
            holder = granted
            check()


@dataclass(frozen=True)
class Sleeper:
    """One that has some work now and then: its bursts and pauses take their turns."""

    request_percent: int
    bursts_ns: tuple[int, ...]
    pauses_ns: tuple[int, ...]


TIMES = st.lists(st.integers(20 * US, 30 * MS), min_size=1, max_size=3).map(tuple)
SLEEPERS = st.lists(st.builds(Sleeper, st.integers(1, 16), TIMES, TIMES), min_size=1, max_size=3)
BUSY = st.lists(st.integers(1, 16), min_size=1, max_size=3)
DRAIN_NS = 300 * US


class World:
    """An arbiter, allocations that always have work, and sleepers; all drain in a moment."""

    def __init__(self, busy: list[int], sleepers: list[Sleeper], hand_over_ns: int) -> None:
        self.arbiter = Arbiter(SETTINGS)
        self.shares = {f"busy{index}": percent for index, percent in enumerate(busy)}
        self.sleepers = {f"sleeper{index}": sleeper for index, sleeper in enumerate(sleepers)}
        self.shares |= {name: sleeper.request_percent for name, sleeper in self.sleepers.items()}
        self.bursts = {name: cycle(sleeper.bursts_ns) for name, sleeper in self.sleepers.items()}
        self.pauses = {name: cycle(sleeper.pauses_ns) for name, sleeper in self.sleepers.items()}
        self.left_ns = dict.fromkeys(self.sleepers, 0)  # of its burst
        self.wakes_ns = {name: next(pauses) for name, pauses in self.pauses.items()}
        self.holder: Grant | None = None
        self.begun_ns = 0
        self.drained_ns: int | None = None
        self.now_ns = 0
        for name, percent in self.shares.items():
            self.arbiter.add(name, Share(percent, 100), 0)
            self.arbiter.join(name, 1, 0)
            self.arbiter.hand_over(name, hand_over_ns)
        for name in self.shares:
            if name not in self.sleepers:
                self.perform(self.arbiter.request(name, 1, 0))

    def perform(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Grant):
                assert self.holder is None
                self.holder, self.begun_ns, self.drained_ns = command, self.now_ns, None
                left_ns = self.left_ns.get(command.allocation_id)
                if left_ns is not None:
                    self.drained_ns = self.now_ns + left_ns
            elif isinstance(command, Revoke):
                latest_ns = self.now_ns + DRAIN_NS
                self.drained_ns = min(self.drained_ns or latest_ns, latest_ns)

    def step(self) -> None:
        """What happens next."""
        times_ns = [*self.wakes_ns.values(), self.drained_ns, self.arbiter.deadline_ns()]
        self.now_ns = max(self.now_ns, min(time_ns for time_ns in times_ns if time_ns is not None))
        if self.drained_ns is not None and self.drained_ns <= self.now_ns:
            self.release()
            return
        for name, wakes_ns in list(self.wakes_ns.items()):
            if wakes_ns <= self.now_ns:
                del self.wakes_ns[name]
                self.left_ns[name] = next(self.bursts[name])
                self.perform(self.arbiter.request(name, 1, self.now_ns))
                return
        self.perform(self.arbiter.tick(self.now_ns))

    def release(self) -> None:
        assert self.holder is not None
        grant, self.holder, self.drained_ns = self.holder, None, None
        name, held_ns = grant.allocation_id, self.now_ns - self.begun_ns
        follows = True
        if name in self.sleepers:
            self.left_ns[name] -= held_ns
            follows = self.left_ns[name] > 0
            if not follows:
                self.wakes_ns[name] = self.now_ns + next(self.pauses[name])
        self.perform(self.arbiter.release(name, 1, grant.number, held_ns, follows, self.now_ns))


@given(busy=BUSY, sleepers=SLEEPERS, hand_over_ns=st.sampled_from([0, 20 * US, 100 * US, 250 * US, HAND_OVER_MOST_NS]))
@settings(max_examples=examples(120))
def test_no_lag_leaves_its_bound_whoever_wakes(busy: list[int], sleepers: list[Sleeper], hand_over_ns: int) -> None:
    world = World(busy, sleepers, hand_over_ns)
    count = len(world.shares)
    # A turn, and the hand-overs that are charged to who ends another's.
    turn_ns = slice_ns(hand_over_ns, count) + DRAIN_NS + SETTINGS.anticipation_ns + 2 * hand_over_ns
    for _ in range(600):
        world.step()
        for name in world.shares:
            # Whoever leaves takes its lag along, and with it a part of everybody else's.
            assert -turn_ns < world.arbiter.account(name, world.now_ns).lag_ns < 2 * turn_ns
