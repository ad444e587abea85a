"""What those who follow a device's turns are told: each change at its time, no more than can be kept, and nothing once
they have gone."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.clients.budget import pages_of_a_node
from sharemgr.node.clients.device import DeviceArbiter
from sharemgr.node.recorder import CHANGES_A_MESSAGE, CHANGES_MAX, Change, Recorder
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.turns.account import Reader, moment_of
from sharemgr.node.turns.contender import Contender
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.phases import (
    DRAINING,
    ENDING,
    HOLDING,
    IDLE,
    OVERLAPPING,
    THINKING,
    THROTTLED,
    WAITING,
    Phase,
)
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.slices.ends import Ends
from tests.kit.arbiter.silent_gates import SilentGates


class Pages(SilentGates):
    """Their clients say when they will have drained."""

    def __init__(self) -> None:
        self.ends_at_ns = 0

    def open_gates(self, number: int, contended: bool, now_ns: int, free_at_ns: int, ends_at_ns: int) -> None:
        self.ends_at_ns = 0

    def foretold(self) -> Iterable[tuple[int, int]]:
        return [(1, self.ends_at_ns)] if self.ends_at_ns else []


class Bed:
    """A device of two allocations, a and b, each half of it, with a client each, which has not asked yet."""

    def __init__(self) -> None:
        self._loop = Loop()
        self.readers: list[Reader] = []
        self.device = DeviceArbiter(
            self._loop, Settings(), Ends(), Rule(), self.readers, pages_of_a_node().part(100, 1)
        )
        self.pages = {"a": Pages(), "b": Pages()}
        for name, pages in self.pages.items():
            self.device.add(name, Share(50, 100), pages, 0)
            self.device.join(name, 1, False, 0)

    def read(self) -> Recorder:
        """Somebody follows from now on."""
        recorder = Recorder(lambda _: None)
        self.readers.append(recorder)
        self.device.tell()
        return recorder

    def tick(self, now_ns: int) -> None:
        """What is due then is done."""
        self.device._tick(now_ns)

    @property
    def holder(self) -> str:
        """Who has the device."""
        return "a" if self.device.holds("a", 1) else "b"

    def close(self) -> None:
        self.device.close()
        self._loop.close()


@pytest.fixture
def bed() -> Iterator[Bed]:
    bed = Bed()
    yield bed
    bed.close()


def told(changes: list[Change]) -> list[tuple[int, str, Phase | None, int]]:
    """When who became what, and the number of its grant."""
    return [
        (at_ns, name, moment.phase if moment else None, moment.number if moment else 0)
        for at_ns, name, _, moment in changes
    ]


def test_each_change_is_told_once_and_with_its_time(bed: Bed) -> None:
    recorder = bed.read()
    assert told(recorder.give()) == [(0, "a", IDLE, 0), (0, "b", IDLE, 0)]
    device = bed.device
    device.request("a", 1, MS)
    device.request("b", 1, 2 * MS)
    device.usage("a", 1, 1, 100, 3 * MS)
    bed.tick(6 * MS)
    device.release("a", 1, 1, 0, False, 7 * MS)
    device.release("b", 1, 2, 0, False, 8 * MS)
    assert told(recorder.give()) == [
        (MS, "a", HOLDING, 1),
        (2 * MS, "b", WAITING, 0),
        (6 * MS, "a", DRAINING, 1),
        (7 * MS, "a", THINKING, 1),
        (7 * MS, "b", HOLDING, 2),
        (8 * MS, "b", THINKING, 2),
    ]


def test_a_grant_ahead_of_a_drain_is_told_with_its_begin_and_again_when_that_is_known(bed: Bed) -> None:
    recorder, device = bed.read(), bed.device
    device.request("a", 1, MS)
    device.request("b", 1, 2 * MS)
    bed.pages["a"].ends_at_ns = 7 * MS
    bed.tick(6 * MS)
    device.release("a", 1, 1, 5 * MS, False, 6 * MS + 900 * US)
    begins = [
        (at_ns, moment.begins_at_ns) for at_ns, name, _, moment in recorder.give() if moment and moment.phase is HOLDING
    ]
    assert begins == [(MS, MS), (6 * MS, 7 * MS), (6 * MS + 900 * US, 6 * MS + 900 * US)]


def test_who_drains_ahead_is_ending(bed: Bed) -> None:
    recorder, device = bed.read(), bed.device
    device.request("a", 1, MS)
    device.request("b", 1, 2 * MS)
    recorder.give()
    bed.pages["a"].ends_at_ns = 7 * MS
    bed.tick(6 * MS)
    assert told(recorder.give()) == [(6 * MS, "a", ENDING, 1), (6 * MS, "b", HOLDING, 2)]


def test_a_client_that_comes_into_a_grant_changes_nothing(bed: Bed) -> None:
    recorder, device = bed.read(), bed.device
    device.request("a", 1, MS)
    recorder.give()
    device.join("a", 2, False, 2 * MS)
    device.request("a", 2, 3 * MS)
    device.release("a", 1, 1, 0, True, 4 * MS)
    assert recorder.give() == []
    device.request("b", 1, 5 * MS)
    bed.tick(6 * MS)
    # The number as it was when the grant began, though each that came in has made a new one.
    assert told(recorder.give()) == [(5 * MS, "b", WAITING, 0), (6 * MS, "a", DRAINING, 1)]


def test_a_slice_that_goes_on_beside_others_is_another_moment() -> None:
    contender = Contender("a", Share(50, 100), Settings(), 0)
    before = moment_of(contender, False, None)
    assert moment_of(contender, False, before) is before
    assert moment_of(contender, True, before) == replace(before, beside=True)


def test_who_begins_to_follow_is_told_how_all_stand(bed: Bed) -> None:
    bed.device.request("a", 1, MS)
    bed.device.request("b", 1, 2 * MS)
    first, second = bed.read(), bed.read()
    assert told(first.give()) == told(second.give()) == [(2 * MS, "a", HOLDING, 1), (2 * MS, "b", WAITING, 0)]


def test_who_follows_no_more_is_told_nothing(bed: Bed) -> None:
    stays, goes = bed.read(), bed.read()
    stays.give(), goes.give()
    bed.readers.remove(goes)
    bed.device.request("a", 1, MS)
    assert (told(stays.give()), goes.give()) == ([(MS, "a", HOLDING, 1)], [])


def test_one_that_is_removed_is_told_as_such_and_anew_when_it_is_back(bed: Bed) -> None:
    recorder, device = bed.read(), bed.device
    recorder.give()
    device.remove("a", 2 * MS)
    device.add("a", Share(50, 100), bed.pages["a"], 3 * MS)
    assert told(recorder.give()) == [(2 * MS, "a", None, 0), (3 * MS, "a", IDLE, 0)]


def test_no_more_is_kept_than_there_is_room_for_and_what_follows_is_whole(bed: Bed) -> None:
    recorder, device = bed.read(), bed.device
    device.request("a", 1, MS)
    device.request("b", 1, MS)
    # So that room ends in the middle of an event, which changes both.
    recorder.take("c", None, MS)
    turns = 0
    while not recorder.lost and turns < CHANGES_MAX:
        turns += 1
        device.release(bed.holder, 1, turns, 0, True, (1 + turns) * MS)
    assert recorder.lost == CHANGES_MAX
    kept = recorder.give()
    assert recorder.lost == 0
    device.tell()
    kept += recorder.give()
    other = "b" if bed.holder == "a" else "a"
    assert {(name, phase) for _, name, phase, _ in told(kept)} == {(bed.holder, HOLDING), (other, WAITING)}


def test_a_message_is_small_however_much_there_is(bed: Bed) -> None:
    recorder = bed.read()
    for index in range(CHANGES_A_MESSAGE):
        recorder.take("a", None, index)
    counts = []
    while recorder.more:
        counts.append(len(recorder.give()))
    assert counts == [CHANGES_A_MESSAGE, 2]


def test_over_its_limit_and_given_up_are_told(bed: Bed) -> None:
    recorder, device = bed.read(), bed.device
    device.update("a", Share(50, 50), 0)
    device.request("a", 1, MS)
    device.request("b", 1, MS)
    now_ns, phases = MS, set()
    while OVERLAPPING not in phases:
        now_ns += MS
        bed.tick(now_ns)
        phases |= {phase for _, _, phase, _ in told(recorder.give())}
    device.release("a", 1, 1, now_ns, True, now_ns)
    phases |= {phase for _, _, phase, _ in told(recorder.give())}
    assert {HOLDING, DRAINING, OVERLAPPING, THROTTLED} <= phases
