"""How long a drain is waited for, as long as its client's drains usually take, and a grace; and whether what a client
foretells is believed."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Command, Grant, Revoke
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()
UNKNOWN_NS = SETTINGS.queue_cap_ns + SETTINGS.drain_grace_ns
"""How long one waits for the drain of one whose drains took no time so far."""


class Turns:
    """A device of which a and b have a half each. Both always want it; b drains at once when it is called back."""

    def __init__(self) -> None:
        self.arbiter = Arbiter()
        self.now_ns = 0
        self.granted_early = False
        """Whether b was granted the device as soon as a foretold its last drain."""
        self.numbers = {"a": 1}
        for name in ("a", "b"):
            self.arbiter.add(name, Share(50, 100), 0)
            self.arbiter.join(name, 1, 0)
            self.arbiter.request(name, 1, 0)

    def until_a_is_called_back(self) -> None:
        """Lets time pass."""
        while not self.step():
            pass

    def given_up_after_ns(self, drain_ns: int, foretold_ns: int = 0, corrected_ns: int = 0) -> int:
        """a, called back, drains for so long, and says how long (0: it does not), and after so long the truth: after
        what time it is waited for no more; 0: to its end."""
        began_ns, given_up_ns = self.now_ns, 0
        self.granted_early = bool(foretold_ns and self.foretell(began_ns + foretold_ns))
        if 0 < corrected_ns < drain_ns:
            self.now_ns = began_ns + corrected_ns
            self.foretell(began_ns + drain_ns)
        while (due_ns := self.arbiter.deadline_ns()) is not None and due_ns < began_ns + drain_ns:
            self.step()
            if not given_up_ns and self.arbiter.account("a", self.now_ns).overlapping:
                given_up_ns = self.now_ns - began_ns
        self.now_ns = began_ns + drain_ns
        self._take(self.arbiter.release("a", 1, self.numbers["a"], 0, True, self.now_ns))
        return given_up_ns

    def foretell(self, ends_at_ns: int) -> bool:
        """a says when it will have drained; whether b is granted at once."""
        commands = self.arbiter.draining("a", 1, self.numbers["a"], ends_at_ns, self.now_ns)
        self._take(commands)
        return any(isinstance(command, Grant) for command in commands)

    def step(self) -> bool:
        """What is due next; whether a is called back."""
        due_ns = self.arbiter.deadline_ns()
        assert due_ns is not None
        self.now_ns = due_ns
        return self._take(self.arbiter.tick(due_ns))

    def _take(self, commands: list[Command]) -> bool:
        called_back = False
        for command in commands:
            if isinstance(command, Grant):
                self.numbers[command.allocation_id] = command.number
            elif isinstance(command, Revoke) and command.allocation_id == "b":
                called_back |= self._take(self.arbiter.release("b", 1, command.number, 0, True, self.now_ns))
            else:
                called_back |= isinstance(command, Revoke)
        return called_back


def given_up_after_ns(*drains_ns: int) -> list[int]:
    """The same for several drains, one after the other, of which nothing is foretold."""
    turns = Turns()
    found = []
    for drain_ns in drains_ns:
        turns.until_a_is_called_back()
        found.append(turns.given_up_after_ns(drain_ns))
    return found


def test_one_whose_drain_took_long_is_waited_for_from_then_on() -> None:
    assert given_up_after_ns(400 * MS, 400 * MS, 10 * MS, 400 * MS) == [UNKNOWN_NS, 0, 0, 0]


def test_the_most_of_late_is_waited_for_and_a_grace() -> None:
    assert given_up_after_ns(400 * MS, 450 * MS, 600 * MS) == [UNKNOWN_NS, 0, UNKNOWN_NS + 450 * MS]


@pytest.mark.parametrize(
    ("foretold_ns", "given_up_ns"),
    [(0, UNKNOWN_NS + MS), (250 * MS, UNKNOWN_NS + 250 * MS), (400 * MS, 0), (5_000 * MS, 0)],
)
def test_what_was_long_ago_is_waited_for_if_it_is_foretold(foretold_ns: int, given_up_ns: int) -> None:
    turns = Turns()
    for drain_ns in (400 * MS, *[MS] * 60):
        turns.until_a_is_called_back()
        turns.given_up_after_ns(drain_ns)
    turns.until_a_is_called_back()
    assert turns.given_up_after_ns(400 * MS, foretold_ns) == given_up_ns


def test_what_was_never_seen_to_end_is_waited_for_no_longer_whatever_is_foretold() -> None:
    turns = Turns()
    turns.until_a_is_called_back()
    assert turns.given_up_after_ns(400 * MS, 400 * MS) == UNKNOWN_NS


@pytest.mark.parametrize("corrected_ns", [0, 3 * MS])
def test_the_next_is_granted_early_while_drains_end_when_that_is_foretold(corrected_ns: int) -> None:
    """Programs whose kernels take now so long, now so long foretell too early: the next one would run beside them, and
    does however right they are once it has begun."""
    turns = Turns()
    granted_early = []
    for drain_ns in [2 * MS] * 3 + [20 * MS] * 8 + [2 * MS] * 24:
        turns.until_a_is_called_back()
        turns.given_up_after_ns(drain_ns, 2 * MS, corrected_ns)
        granted_early.append(turns.granted_early)
    begun, unforeseen, again = granted_early[:4], granted_early[4:12], granted_early[-4:]
    assert (begun, unforeseen, again) == ([True] * 4, [False] * 8, [True] * 4)


def test_one_that_is_given_up_is_believed_no_more_until_it_drains() -> None:
    """It never drains, and a launch of its waits, so that it takes part again and again."""
    turns = Turns()
    turns.until_a_is_called_back()
    turns.given_up_after_ns(400 * MS)
    waited_ns = []
    for _ in range(3):
        turns.until_a_is_called_back()
        began_ns, overruns = turns.now_ns, turns.arbiter.account("a", turns.now_ns).overruns
        turns.arbiter.request("a", 1, began_ns)
        while turns.arbiter.account("a", turns.now_ns).overruns == overruns:
            turns.step()
        waited_ns.append(turns.now_ns - began_ns)
    assert waited_ns == [UNKNOWN_NS + 400 * MS, UNKNOWN_NS, UNKNOWN_NS]


def test_one_that_was_given_up_and_takes_part_again_is_waited_for_once_it_has_drained() -> None:
    """A program of several threads: while one's graph runs, another waits at the gate."""
    turns = Turns()
    turns.until_a_is_called_back()
    began_ns = turns.now_ns
    turns.arbiter.request("a", 1, began_ns)
    while turns.now_ns < began_ns + 80 * MS:
        turns.step()
    turns.now_ns = began_ns + 90 * MS
    assert turns.arbiter.account("a", turns.now_ns).overruns == 1
    for _ in range(2):
        assert turns.arbiter.release("a", 1, 1, 90 * MS, True, turns.now_ns) == []
        # Only the first one counts.
        assert turns.arbiter.account("a", turns.now_ns).gpu_ns == 90 * MS
    turns.until_a_is_called_back()
    assert turns.given_up_after_ns(140 * MS) == 0


def test_gpu_time_of_a_drain_that_was_given_up_is_heard_under_the_next_grant_too() -> None:
    turns = Turns()
    turns.until_a_is_called_back()
    turns.arbiter.request("a", 1, turns.now_ns)
    # b has had as much: a, whose graph of 300 ms still runs, is granted anew.
    while turns.arbiter.account("a", turns.now_ns).grants == 1:
        turns.step()
    granted_ns = turns.now_ns
    assert granted_ns < 300 * MS
    number = turns.numbers["a"]
    turns.arbiter.usage("a", 1, number, 1000 * MS, granted_ns + MS)
    assert turns.arbiter.account("a", granted_ns + MS).gpu_ns == granted_ns + MS
    turns.arbiter.usage("a", 1, number, 1000 * MS, granted_ns + 3 * MS)
    assert turns.arbiter.account("a", granted_ns + 3 * MS).gpu_ns == granted_ns + 3 * MS


def test_nobody_is_waited_for_for_longer_than_a_second_and_the_grace() -> None:
    assert given_up_after_ns(30_000 * MS, 30_000 * MS) == [UNKNOWN_NS, UNKNOWN_NS + SETTINGS.drain_most_ns]
