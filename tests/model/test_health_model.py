"""Health against a model that keeps the whole history and reads it from end to end."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deviceplugin.health.health_config import HealthConfig
from deviceplugin.health.rules import (
    FELL_OFF_BUS_XID,
    IGNORED_XIDS,
    PASSING_XIDS,
    health_of,
    observe,
    resumed,
)
from deviceplugin.health.state import DoubleBitError, Look, Moment, State, Xid
from edgeshare.contract.health import Answer, Reason
from edgeshare.contract.units import NS_PER_S
from tests.kit.properties.examples import examples

LIMIT_C = 90
SETTINGS = HealthConfig(temperature_limit_c=LIMIT_C).settings()
XIDS = st.sampled_from([13, 48, 79, 94, 95, 109, 999])
STEPS = st.sampled_from([1, 20, 61, 301])


class HealthAgainstHistory(RuleBasedStateMachine):
    """One device. Its resets are known here, and only their signs to the machine under test."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State()
        self.now_s = 0
        self.boot = 0
        self.energy_mj = 10**12
        self.read_since_boot = False
        self.history: list[tuple[int, str, Any]] = []
        """(when, what, more)"""

    def see(self, seen: Look | Xid | DoubleBitError) -> None:
        self.state = observe(self.state, seen, SETTINGS, Moment(self.now_s * NS_PER_S, self.now_s * NS_PER_S))

    @rule(step_s=STEPS)
    def time_passes(self, step_s: int) -> None:
        self.now_s += step_s

    @rule(number=XIDS)
    def xid(self, number: int) -> None:
        self.history.append((self.now_s, "xid", number))
        self.see(Xid(number))

    @rule()
    def memory_error(self) -> None:
        self.history.append((self.now_s, "ecc", None))
        self.see(DoubleBitError())

    @rule(temperature_c=st.sampled_from([40, 84, 85, 89, 90, 100]), files=st.booleans())
    def look(self, temperature_c: int, files: bool) -> None:
        self.energy_mj += 10
        self.read_since_boot = True
        self.history.append((self.now_s, "good", (temperature_c, files)))
        answer = Answer(self.energy_mj, 0, False, False, temperature_c)
        self.see(Look(f"boot-{self.boot}", answer, files=frozenset({"/dev/nvidia0"} if files else ())))

    @rule(lost=st.booleans())
    def look_without_an_answer(self, lost: bool) -> None:
        self.history.append((self.now_s, "lost" if lost else "silent", None))
        files = frozenset({"/dev/nvidia0"})
        self.see(Look(f"boot-{self.boot}", None, "no", lost=lost, files=files))

    @precondition(lambda self: self.last("good", "silent", "lost") >= 0)
    @rule(boots=st.booleans())
    def reset(self, boots: bool) -> None:
        self.history.append((self.now_s, "reset", None))
        # Lower than at any look; how low does not matter.
        self.energy_mj -= 10**6
        # A counter that was never read shows nothing.
        if boots or not self.read_since_boot:
            self.boot += 1
            self.read_since_boot = False

    @rule()
    def restart_of_the_plugin(self) -> None:
        self.history.append((self.now_s, "restart", None))
        self.state = resumed(self.state)

    # -- What the history says

    def last(self, *kinds: str) -> int:
        """Index of the last entry of these kinds; -1: there was none."""
        return max((index for index, (_, kind, _) in enumerate(self.history) if kind in kinds), default=-1)

    def last_xid(self, of: Any) -> int:
        found = [index for index, (_, kind, number) in enumerate(self.history) if kind == "xid" and of(number)]
        return max(found, default=-1)

    def good_looks_after(self, index: int) -> list[tuple[int, tuple[int, bool]]]:
        """The unbroken row of good looks at the end, none of them before the entry."""
        row = []
        for when, kind, more in reversed(self.history[index + 1 :]):
            if kind in ("silent", "lost", "restart"):
                break
            if kind == "good":
                row.append((when, more))
        return row[::-1]

    def has(self, reason: Reason) -> bool:
        return any(condition.reason == reason for condition in self.state.conditions)

    def told_from(self, index: int) -> int:
        """From where on a reset may be taken for one after the entry: a counter shows one between two answers, and
        that of a device which did not answer after its fault may have been before it."""
        looks = [kind for _, kind, _ in self.history[index + 1 :] if kind in ("good", "silent", "lost")]
        if self.history[index][1] != "lost" and looks[:1] == ["good"]:
            return index
        return max((each for each in range(index) if self.history[each][1] == "good"), default=0)

    def was_forgiven(self, index: int) -> bool:
        """Whether, after the entry, there was a reset and then two good looks in a row."""
        was_reset = any(kind == "reset" for _, kind, _ in self.history[self.told_from(index) : index])
        row = 0
        for _, kind, _ in self.history[index + 1 :]:
            was_reset |= kind == "reset"
            row = row + 1 if kind == "good" and was_reset else row if kind not in ("silent", "lost", "restart") else 0
            if row == 2:
                return True
        return False

    @invariant()
    def fallen_off_the_bus_is_never_forgiven_without_a_reset(self) -> None:
        fell = max(self.last("lost"), self.last_xid(lambda number: number == FELL_OFF_BUS_XID))
        if fell >= 0:
            assert self.has(Reason.FELL_OFF_BUS) or self.was_forgiven(fell)
        else:
            assert not self.has(Reason.FELL_OFF_BUS)

    @invariant()
    def nor_is_any_fault_that_takes_a_reset(self) -> None:
        def grave(number: int) -> bool:
            return number not in PASSING_XIDS | IGNORED_XIDS | {FELL_OFF_BUS_XID}

        for reason, index in ((Reason.XID, self.last_xid(grave)), (Reason.UNCORRECTABLE_ECC, self.last("ecc"))):
            if index >= 0:
                assert self.has(reason) or self.was_forgiven(index)
            else:
                assert not self.has(reason)

    @invariant()
    def a_passing_fault_is_over_only_when_it_was_quiet_for_its_time(self) -> None:
        index = self.last_xid(lambda number: number in PASSING_XIDS)
        assert self.has(Reason.PASSING_XID) == (index >= 0 and not self.was_ever_quiet(index))

    def was_ever_quiet(self, index: int) -> bool:
        """Whether some unbroken row of good looks after the entry was long enough."""
        row: list[int] = []
        for when, kind, _ in self.history[index + 1 :]:
            if kind in ("silent", "lost", "restart"):
                row = []
            elif kind == "good":
                row.append(when)
                if len(row) >= 2 and (row[-1] - row[0]) * NS_PER_S >= SETTINGS.passing_xid_quiet_ns:
                    return True
        return False

    @invariant()
    def a_device_that_was_too_hot_has_cooled_down_for_its_time(self) -> None:
        hot, row = False, []
        for when, kind, more in self.history:
            if kind in ("silent", "lost", "restart"):
                row = []
            elif kind == "good":
                temperature_c = more[0]
                if temperature_c >= (LIMIT_C - SETTINGS.temperature_margin_c if hot else LIMIT_C):
                    hot, row = True, []
                elif hot:
                    row.append(when)
                    calm = (row[-1] - row[0]) * NS_PER_S >= SETTINGS.temperature_calm_ns
                    hot = not (len(row) >= 2 and calm)
        assert self.has(Reason.TOO_HOT) == hot

    @invariant()
    def an_unanswered_look_is_never_healthy_at_once(self) -> None:
        if self.history and self.history[-1][1] in ("silent", "lost"):
            assert not health_of(self.state).healthy

    @invariant()
    def it_comes_back_when_all_is_well(self) -> None:
        """No condition outlives a reset and good looks for longer than every wait: nothing is stuck."""
        fault, reset = self.last("xid", "ecc", "lost"), self.last("reset")
        row = self.good_looks_after(max(fault, reset))
        long = len(row) >= 3 and (row[-1][0] - row[0][0]) * NS_PER_S >= SETTINGS.passing_xid_quiet_ns
        cool = all(temperature_c < LIMIT_C - SETTINGS.temperature_margin_c for _, (temperature_c, _) in row)
        told_apart = any(kind in ("good", "silent", "lost") for _, kind, _ in self.history[fault:reset])
        if reset > fault >= 0 and told_apart and long and cool and all(files for _, (_, files) in row):
            assert health_of(self.state).healthy, self.state


TestHealth = HealthAgainstHistory.TestCase
TestHealth.settings = settings(max_examples=examples(200), stateful_step_count=40, deadline=None)
