"""A budget: a rate on average, a burst at once; places; and what many do who share them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from sharemgr.node.clients.budget import (
    CLIENT_DESCRIPTORS,
    CLIENTS_MOST,
    Budget,
    NodePlaces,
    Part,
    Places,
    Queue,
    Whole,
    clients_most,
)


def test_a_burst_is_there_at_once_and_comes_back_at_the_rate() -> None:
    budget = Budget(10, 5)
    assert [budget.spend(NS_PER_S) for _ in range(6)] == [True] * 5 + [False]
    assert budget.spend(NS_PER_S + 2 * NS_PER_S // 10)
    assert not budget.spend(NS_PER_S + 2 * NS_PER_S // 10)
    assert all(budget.spend(10 * NS_PER_S) for _ in range(5))


def test_what_was_spent_beyond_it_is_paid_back() -> None:
    budget = Budget(1, 2)
    assert not budget.spend(0, 4)
    assert not budget.spend(2 * NS_PER_S - 1)
    assert budget.spend(200 * NS_PER_S)


def test_how_long_it_takes_until_it_may_be_done_again() -> None:
    budget = Budget(10, 5)
    now_ns = NS_PER_S
    while budget.spend(now_ns):
        assert budget.wait_ns(now_ns) == 0
    assert budget.wait_ns(now_ns) == NS_PER_S // 10
    assert budget.wait_ns(now_ns + NS_PER_S // 10) == 0
    assert budget.spend(now_ns + 2 * NS_PER_S // 10)


def paying(parts: list[Part], wanted: list[int], seconds: int) -> list[int]:
    """How often each could do it by a clock of milliseconds, who tries so often in each of these, and waits where it is
    told to. They are asked by turns."""
    did = [0] * len(parts)
    for now_ms in range(seconds * 1000):
        now_ns = NS_PER_S + now_ms * NS_PER_MS
        for each, part in enumerate(parts):
            for _ in range(wanted[each]):
                if part.wait_ns(now_ns):
                    break
                part.spend(now_ns)
                did[each] += 1
    return did


@pytest.mark.parametrize("many", [1, 5, 20, 99])
def test_many_do_together_no_more_than_the_whole_allows(many: int) -> None:
    whole = Whole(1000, 250, 500)
    did = paying([whole.part(1, 1) for _ in range(many)], [10] * many, 10)
    guaranteed = many * 500 // 100
    # A quarter of a second's at once, two seconds' of what is guaranteed, and of each what it does last.
    assert sum(did) <= 10 * (1000 + guaranteed) + 250 + 2 * guaranteed + many
    # And no less.
    assert sum(did) >= min(10 * 1000 * many, 10 * 1000)


def test_one_by_itself_does_as_much_as_if_there_were_no_others() -> None:
    alone = Budget(1000, 250)
    one = Whole(1000, 250, 500).part(1, 8)
    for now_ms in range(2000):
        for _ in range(7):
            assert one.wait_ns(now_ms * NS_PER_MS) == alone.wait_ns(now_ms * NS_PER_MS)
            assert one.spend(now_ms * NS_PER_MS) == alone.spend(now_ms * NS_PER_MS)


@given(
    units=st.lists(st.integers(1, 40), min_size=2, max_size=20),
    floods=st.lists(st.integers(0, 20), min_size=20, max_size=20),
)
def test_who_does_no_more_than_it_is_guaranteed_never_waits(units: list[int], floods: list[int]) -> None:
    whole = Whole(2000, 500, 1000)
    devices = 1 + sum(units) // 100
    calm, *others = (whole.part(each, devices) for each in units)
    every_ms = 1 + 1000 // (2000 * units[0] // (2 * devices * 100))
    for now_ms in range(3000):
        now_ns = now_ms * NS_PER_MS
        for part, count in zip(others, floods, strict=False):
            for _ in range(count):
                part.spend(now_ns)
        if now_ms % every_ms == 0:
            assert not calm.wait_ns(now_ns)
            assert calm.spend(now_ns)


def test_who_waited_for_the_others_goes_on_by_what_it_is_guaranteed() -> None:
    whole = Whole(1000, 250, 500)
    calm, loud = whole.part(10, 1), whole.part(1, 1)
    now_ns = NS_PER_S
    for _ in range(5000):
        loud.spend(now_ns)
    # Two seconds' worth, and one that it pays for afterwards.
    for _ in range(101):
        assert calm.spend(now_ns)
    assert not calm.spend(now_ns)
    assert calm.wait_ns(now_ns) == NS_PER_S // 50
    assert loud.wait_ns(now_ns) > NS_PER_S


def test_who_starts_does_as_much_at_once_as_each_is_guaranteed_however_few_its_units() -> None:
    whole = Whole(100, 128, 50, 64)
    *loud, calm = (whole.part(units, 1) for units in (30, 30, 30, 1))
    for part in loud:
        while not part.wait_ns(0):
            part.spend(0)
    # And one that it pays for afterwards.
    assert [calm.wait_ns(0) or calm.spend(0) for _ in range(65)] == [True] * 65
    assert calm.wait_ns(0)


def test_what_an_offence_costs_is_paid_by_who_offends() -> None:
    whole = Whole(1000, 250, 500)
    bad, good = whole.part(1, 1), whole.part(10, 1)
    for now_ms in range(1000):
        bad.spend(now_ms * NS_PER_MS, 20)
    assert bad.wait_ns(NS_PER_S) > NS_PER_S
    assert not good.wait_ns(NS_PER_S)
    assert good.spend(NS_PER_S)


def test_what_counts_several_times_does_so_beyond_the_guarantee_alone() -> None:
    """Half of 1000 is guaranteed to all units of one device: 50 a second to ten, two seconds' worth at once."""
    whole = Whole(1000, 250, 500)
    part, other = whole.part(10, 1), whole.part(10, 1)
    guaranteed = sum(part.spend(0, 1, 50) for _ in range(101))
    assert guaranteed == 101
    # Of the 250 that all may do at once.
    assert [part.spend(0, 1, 50) for _ in range(6)] == [True] * 5 + [False]
    assert part.wait_ns(0)
    assert [other.spend(0) for _ in range(101)] == [True] * 101
    assert not other.spend(0)


@pytest.mark.parametrize(("descriptors", "most"), [(4, 1), (1024, 128), (4096, 896), (1 << 20, CLIENTS_MOST)])
def test_a_node_has_so_many_clients_that_descriptors_are_left(descriptors: int, most: int) -> None:
    assert clients_most(descriptors) == most
    assert most == 1 or most * CLIENT_DESCRIPTORS < descriptors


def test_who_crowds_leaves_the_others_what_they_are_guaranteed() -> None:
    node = NodePlaces(100)
    crowding, honest, small = (node.part(units, 1) for units in (40, 60, 1))
    while crowding.any_free:
        crowding.take()
    for place, count in ((honest, 30), (small, 1)):
        for _ in range(count):
            assert place.any_free
            place.take()
        assert not place.any_free
    crowding.give()
    assert honest.any_free
    assert small.any_free
    honest.take()
    assert not any(each.any_free for each in (crowding, honest, small))


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=200))
def test_all_together_never_have_more_than_there_is_and_all_of_it_comes_back(moves: list[tuple[int, bool]]) -> None:
    node = NodePlaces(20)
    parts: list[Places] = [node.part(units, 1) for units in (20, 30, 50)]
    taken = [0, 0, 0]
    for which, comes in moves:
        if comes and parts[which].any_free:
            parts[which].take()
            taken[which] += 1
        elif not comes and taken[which]:
            parts[which].give()
            taken[which] -= 1
        assert sum(taken) <= 20
        assert all(part.any_free for part, count, own in zip(parts, taken, (2, 3, 5), strict=True) if count < own)
    for part, count in zip(parts, taken, strict=True):
        for _ in range(count):
            part.give()
    assert node.common_left == 10


class Waiting:
    """Some who wait by a clock of milliseconds: each time that one goes on it pays so often, and waits again."""

    def __init__(self, who: int, costs: int) -> None:
        self.now_ns = NS_PER_S
        self.went_on: list[tuple[int, int]] = []
        """At which millisecond, and who."""
        self._costs = costs
        self._set_ns: list[int] = []
        self.part = Whole(100, 1, guaranteed=1).part(100, 1)
        self.queue = Queue(self.part, 20 * NS_PER_MS, lambda wait_ns: self._set_ns.append(self.now_ns + wait_ns))
        for each in range(who):
            self.wait(each)

    def wait(self, who: int) -> None:
        self.queue.wait(who, lambda: self._go_on(who), self.now_ns)

    def _go_on(self, who: int) -> None:
        self.went_on.append(((self.now_ns - NS_PER_S) // NS_PER_MS, who))
        if self._costs:
            self.part.spend(self.now_ns, self._costs)
            self.wait(who)

    def run(self, ms: int) -> None:
        """What is due within so many milliseconds, and that there is one timer at most."""
        for _ in range(ms):
            self.now_ns += NS_PER_MS
            assert len(self._set_ns) <= 1
            if self._set_ns and self._set_ns[0] <= self.now_ns:
                self._set_ns.clear()
                self.queue.go_on(self.now_ns)


def test_of_many_that_wait_one_goes_on_for_what_is_paid_in_their_order() -> None:
    waiting = Waiting(64, costs=1)
    waiting.run(5000)
    at_ms, who = zip(*waiting.went_on, strict=True)
    # 100 a second, one that is there at once, and one a second that is guaranteed, with two at once.
    assert 495 <= len(who) <= 510
    assert all(each == number % 64 for number, each in enumerate(who))
    assert max(at_ms.count(each) for each in at_ms) <= 4
    assert at_ms[0] == 20


def test_who_waits_does_so_for_a_while_at_least_and_who_needs_nothing_keeps_nobody() -> None:
    waiting = Waiting(64, costs=0)
    waiting.run(19)
    assert not waiting.went_on
    waiting.run(1)
    assert waiting.went_on == [(20, each) for each in range(64)]
    assert not len(waiting.queue)


def test_who_has_left_waits_no_more_and_leaves_nothing() -> None:
    waiting = Waiting(3, costs=0)
    waiting.queue.leave(1)
    waiting.queue.leave(7)
    waiting.run(20)
    assert [who for _, who in waiting.went_on] == [0, 2]


def test_one_that_fails_to_go_on_keeps_nobody_waiting() -> None:
    waiting = Waiting(0, costs=0)

    def fails() -> None:
        raise ValueError("it fails")

    waiting.queue.wait(0, fails, waiting.now_ns)
    waiting.wait(1)
    with pytest.raises(ValueError, match="it fails"):
        waiting.run(20)
    waiting.run(1)
    assert [who for _, who in waiting.went_on] == [1]
