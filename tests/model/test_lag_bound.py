"""The bound of the rule: among the same saturating allocations −q < lag ≤ q, whatever their number."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from edgeshare.units import NS_PER_MS as MS
from edgeshare.units import NS_PER_US as US
from sharemgr.node.arbiter import Arbiter, Grant, Prolong, Revoke, Settings, Share

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


@given(rivals=rivals(), late_ns=st.integers(0, TICK_LATE_NS), hand_over_ns=st.integers(0, HAND_OVER_MOST_NS))
@settings(max_examples=120, deadline=None, derandomize=True)
def test_no_lag_leaves_its_bound(rivals: list[Rival], late_ns: int, hand_over_ns: int) -> None:
    arbiter = Arbiter(SETTINGS)
    by_name = {f"a{index}": rival for index, rival in enumerate(rivals)}
    whole_percent = sum(rival.request_percent for rival in rivals)
    longest_ns = max(max(rival.drains_ns) for rival in rivals)
    turn_ns = SETTINGS.slice_ns + longest_ns + late_ns  # q
    for name, rival in by_name.items():
        arbiter.add(name, Share(rival.request_percent, 100), 0)
        arbiter.join(name, 1, 0)
        arbiter.hand_over(name, hand_over_ns)
    commands = [command for name in by_name for command in arbiter.request(name, 1, 0)]
    holder = next(command for command in commands if isinstance(command, Grant))
    turns = dict.fromkeys(by_name, 0)
    now_ns = 0

    def check() -> None:
        for name, rival in by_name.items():
            lag_ns = arbiter.account(name, now_ns).lag_ns
            assert lag_ns > -turn_ns - ROUNDING_NS
            # Turns that cost more than theirs usually do: each rival's, once. A renewed slice is a turn with no drain.
            surprises_ns = sum(max(each.drains_ns) for each in rivals if each is not rival)
            # Nobody is charged for hand-overs, once the turn that they began is over.
            surprises_ns += hand_over_ns
            upper_ns = turn_ns + surprises_ns * rival.request_percent // whole_percent
            assert lag_ns <= upper_ns + ROUNDING_NS

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
