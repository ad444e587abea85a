"""Who is singled out where reports do not add up to what the device was busy, and what it is charged for then."""

from collections.abc import Sequence

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.beside.rule import Gates
from sharemgr.node.turns.gate import Gate, Rule
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.share.standing import Standing
from sharemgr.node.turns.share.trust import LIE_NS

SETTINGS = Settings()
SLICE_NS = SETTINGS.slice_ns


class Node:
    """Gates of one device, and what a driver says each second."""

    def __init__(self, *request_percents: int, knows: bool = True) -> None:
        self.gates = Gates(SETTINGS, Rule(), 0)
        self.knows = knows
        self.now_ns = 0
        for percent in request_percents:
            self.gates.add(Gate(Standing(Share(percent, 100), SETTINGS, 0), SETTINGS))

    @property
    def suspects(self) -> list[int]:
        return [index for index, gate in enumerate(self.gates.gates) if gate.suspect]

    def check(
        self, told_ns: Sequence[int], used_ns: Sequence[int], *, others_ns: int = 0, running_ns: Sequence[int] = ()
    ) -> list[int]:
        """A second is over, of which each said that it used so much, when it used so much. Returns who was found."""
        gates = self.gates.gates
        self.now_ns += S
        for gate, ns in zip(gates, told_ns, strict=True):
            self.gates.reports.note(gate, ns)
        for gate, ns in zip(gates, running_ns, strict=False):
            gate.demand.read(0, 0, 0, waits=False, queued=True, running_ns=ns, now_ns=self.now_ns)
        used = dict(zip(gates, used_ns, strict=True)) if self.knows else None
        found = self.gates.reports.check(gates, sum(used_ns) + others_ns, used, self.now_ns)
        for gate in found:
            self.gates.doubt(gate, self.now_ns)
        return [gates.index(gate) for gate in found]

    def settle(self, elapsed_ns: int = SLICE_NS, *gpu_ns: int) -> None:
        self.now_ns += elapsed_ns
        for gate, ns in zip(self.gates.gates, gpu_ns, strict=False):
            gate.demand.read(ns, 0, ns, gate.demand.waits, gate.demand.queued, now_ns=self.now_ns)
        self.gates.settle(self.now_ns)


def test_who_hides_what_it_used_is_doubted_and_nobody_else() -> None:
    node = Node(50, 30, 20)
    assert node.check((20 * MS, 300 * MS, 200 * MS), (400 * MS, 300 * MS, 200 * MS)) == [0]
    assert node.suspects == [0]
    assert not node.gates.in_turns


def test_two_that_lie_are_both_doubted() -> None:
    node = Node(40, 40, 20)
    assert node.check((0, 100 * MS, 200 * MS), (400 * MS, 400 * MS, 200 * MS)) == [0, 1]


def test_where_nobody_knows_what_each_used_all_take_turns() -> None:
    node = Node(50, 50, knows=False)
    assert node.check((0, 400 * MS), (500 * MS, 400 * MS)) == []
    assert node.gates.in_turns
    assert node.suspects == []


def test_where_a_process_uses_the_device_that_no_hook_joined_all_take_turns() -> None:
    node = Node(50, 50)
    assert node.check((300 * MS, 300 * MS), (300 * MS, 300 * MS), others_ns=300 * MS) == []
    assert node.gates.in_turns


def test_nobody_is_doubted_where_it_adds_up() -> None:
    """Whatever a driver says of each."""
    node = Node(50, 50)
    for _ in range(100):
        assert node.check((500 * MS, 400 * MS), (900 * MS, 0)) == []
    assert not node.gates.in_turns


def test_one_whose_long_kernel_runs_is_not_doubted_for_anothers_lie() -> None:
    node = Node(50, 50)
    assert node.check((0, 0), (450 * MS, 500 * MS), running_ns=(0, 450 * MS)) == [0]


@pytest.mark.parametrize("told_ns", [3 * S, 3600 * S])
def test_who_says_more_than_there_was_is_doubted(told_ns: int) -> None:
    node = Node(50, 50)
    assert node.check((told_ns, 500 * MS), (500 * MS, 500 * MS)) == [0]


def test_who_says_what_no_hook_does_is_doubted_where_one_knows_what_it_uses() -> None:
    truth = (500 * MS, 500 * MS)
    for knows in (True, False):
        node = Node(50, 50, knows=knows)
        node.gates.gates[0].trust.lies = True
        assert node.check(truth, truth) == ([0] if knows else [])
        assert node.gates.in_turns != knows


def test_one_that_goes_on_saying_what_no_hook_does_is_found_once_and_doubted_for_as_long() -> None:
    node = Node(50, 50)
    truth = (500 * MS, 500 * MS)
    found = []
    for _ in range(100):
        node.gates.gates[0].trust.lies = True
        found += node.check(truth, truth)
        assert node.suspects == [0]
    assert found == [0]
    assert believed_again_s(node, truth, truth) * S == LIE_NS


def test_a_second_liar_is_found_beside_one_that_is_doubted_already() -> None:
    """What the first says, and used, is left out of both sides."""
    node = Node(40, 30, 30)
    honest = (400 * MS, 300 * MS, 300 * MS)
    assert node.check((0, 300 * MS, 300 * MS), honest) == [0]
    for _ in range(5):
        assert node.check((S, 300 * MS, 300 * MS), honest) == []
    assert node.check((S, 0, 300 * MS), honest) == [1]
    assert node.suspects == [0, 1]
    assert not node.gates.in_turns


def believed_again_s(node: Node, told_ns: Sequence[int], used_ns: Sequence[int]) -> int:
    """After how many seconds nobody is doubted any more."""
    for seconds in range(1, 2000):
        node.check(told_ns, used_ns)
        if not node.suspects:
            return seconds
    raise AssertionError("somebody is doubted for ever")


def test_it_is_believed_again_after_half_a_minute_and_later_each_time() -> None:
    node = Node(50, 50)
    truth, lie = (500 * MS, 500 * MS), (0, 500 * MS)
    found = []
    for _ in range(3):
        assert node.check(lie, truth) == [0]
        found.append(believed_again_s(node, truth, truth) * S // LIE_NS)
    assert found == [1, 2, 4]
    for _ in range(16 * LIE_NS // S):
        node.check(truth, truth)
    assert node.check(lie, truth) == [0]
    assert believed_again_s(node, truth, truth) * S == LIE_NS


def test_what_it_said_while_it_was_doubted_is_not_held_against_it_later() -> None:
    node = Node(50, 50)
    truth, lie = (500 * MS, 500 * MS), (0, 500 * MS)
    node.check(lie, truth)
    believed_again_s(node, lie, truth)
    assert node.check((500 * MS, 0), truth) == [1]


def test_what_it_hid_it_owes_and_the_others_are_owed() -> None:
    node = Node(50, 25, 25)
    for gate in node.gates.gates:
        gate.wake(S)
        gate.part = gate.request
    node.check((0, 200 * MS, 200 * MS), (600 * MS, 200 * MS, 200 * MS))
    hidden_ns = int(0.95 * 600 * MS)
    lags = [gate.lag_ns for gate in node.gates.gates]
    assert sum(lags) == 0
    assert lags == pytest.approx([-hidden_ns / 2, hidden_ns / 4, hidden_ns / 4], abs=10)
    # It is as after a long kernel: what the others are owed is not taken off at the next look.
    node.settle()
    assert node.gates.gates[0].lag_ns < -0.9 * hidden_ns / 2


def doubted(*request_percents: int) -> Node:
    """The first one is; it is in, and the others are beside it."""
    node = Node(*request_percents)
    node.gates.doubt(node.gates.gates[0], 0)
    for gate in node.gates.gates:
        gate.open = True
        gate.wake(0)
        gate.demand.read(0, 0, 0, waits=False, queued=True, now_ns=0)
    node.gates.look(0, whole=False)
    return node


def test_it_is_charged_for_what_was_held_and_the_others_did_not_use() -> None:
    node = doubted(50, 50)
    suspect, other = node.gates.gates
    node.settle(SLICE_NS, 0, 2 * MS)
    assert (suspect.used_ns, other.used_ns) == (SLICE_NS - 2 * MS, 2 * MS)
    # Whatever it says, and that it has drained.
    node.gates.look(node.now_ns, whole=False)
    node.settle(SLICE_NS, 3600 * S, 0)
    assert suspect.used_ns == SLICE_NS


def test_what_another_says_later_that_it_used_meanwhile_is_taken_off_again() -> None:
    node = doubted(50, 50)
    suspect, other = node.gates.gates
    node.settle(4 * MS)
    node.settle(1 * MS, 0, 3 * MS)
    assert (suspect.used_ns, other.used_ns) == (-2 * MS, 3 * MS)
    # No more than it was charged with since it was let in.
    node.gates.doubt(other, node.now_ns)
    assert suspect.turn_ns == 2 * MS


def test_who_does_not_hold_the_device_is_charged_nothing() -> None:
    node = doubted(50, 50)
    suspect = node.gates.gates[0]
    node.settle(SLICE_NS)
    suspect.open = suspect.demand.queued = False
    node.gates.look(node.now_ns, whole=False)
    held, turn_ns = suspect.held, suspect.turn_ns
    node.settle(SLICE_NS, 100 * MS)
    assert (held, turn_ns, suspect.used_ns) == (False, 0, 0)


def test_it_has_not_drained_before_it_gives_back_what_it_has() -> None:
    node = doubted(50, 50)
    suspect = node.gates.gates[0]
    suspect.demand.read(0, 0, 0, waits=False, queued=False, now_ns=0)
    node.gates.look(node.now_ns, whole=False)
    assert suspect.demand.queued


def test_it_never_keeps_its_gate_open_and_is_never_kept_out_for() -> None:
    node = doubted(50, 50)
    suspect = node.gates.gates[0]
    for _ in range(100):
        node.settle(SLICE_NS, 0, 0)
        assert suspect.heavy
        assert suspect.tells
        assert not suspect.resident
        assert not suspect.protected
        node.gates.look(node.now_ns, whole=True)
