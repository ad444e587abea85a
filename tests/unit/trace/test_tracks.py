"""What the manager told, as a trace: slices that do not overlap, hand-overs, what is missing, said."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from edgeshare.cli.trace.recording import Recording
from edgeshare.cli.trace.tracks import trace
from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from edgeshare.v1.status_pb2 import (
    ALLOCATION_STATE_DRAINING,
    ALLOCATION_STATE_HOLDING,
    ALLOCATION_STATE_IDLE,
    ALLOCATION_STATE_WAITING,
    DeviceStatus,
    GpuTime,
    TurnChange,
    Turns,
)

BEGIN_NS = 5_000_000_000_123
EPOCH_NS = 1_700_000_000_000_000_000

Json = dict[str, Any]


def allocation(name: str, *devices: str) -> Allocation:
    owner = Owner(namespace="team", pod=name, container="main")
    return Allocation(id=name, device_ids=devices or ("GPU-a",), owner=owner)


def change(state: int, at_us: int, name: str, grant: int = 0, begins_us: int = 0, **flags: bool) -> TurnChange:
    """At so many µs after the begin of the recording."""
    at_ns, begins_at_ns = (BEGIN_NS + each * US for each in (at_us, begins_us or at_us))
    return TurnChange(at_ns=at_ns, allocation_id=name, state=state, grant=grant, begins_at_ns=begins_at_ns, **flags)


idle = partial(change, ALLOCATION_STATE_IDLE)
waiting = partial(change, ALLOCATION_STATE_WAITING)
holding = partial(change, ALLOCATION_STATE_HOLDING)
draining = partial(change, ALLOCATION_STATE_DRAINING)


def turns(now_us: int, *changes: TurnChange, **fields: Any) -> Turns:
    """A message of so many µs after the begin."""
    named = {each.allocation_id: allocation(each.allocation_id) for each in changes}
    now = {"now_ns": BEGIN_NS + now_us * US, "epoch_ns": EPOCH_NS + now_us * US}
    return Turns(**{**now, "changes": changes, "allocations": named.values(), **fields})


def recorded(messages: Sequence[Turns], length_ms: int = 10) -> Recording:
    devices = [
        DeviceStatus(id=f"GPU-{name}", index=index, model="t4", accelerator="gpu") for index, name in enumerate("ab")
    ]
    recording = Recording(devices, length_ms * MS)
    for message in messages:
        recording.take(message)
    return recording


def content(*messages: Turns, length_ms: int = 10) -> Json:
    """The trace of these messages, held to what every trace has to be."""
    made = trace(recorded(messages, length_ms), "")
    names = {(event["pid"], event.get("tid")) for event in made["traceEvents"] if event["ph"] == "M"}
    threads = defaultdict(list)
    for event in made["traceEvents"]:
        if event["ph"] == "X":
            assert event["name"]
            assert min(event["ts"], event["dur"]) >= 0
            assert names >= {(event["pid"], event["tid"]), (event["pid"], None)}
            threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    numbers = [pid for pid, tid in names if tid is None] + [tid for _, tid in names if tid is not None]
    assert 0 not in numbers
    assert len(set(numbers)) == len(numbers)
    for spans in threads.values():
        assert all(before[1] <= after[0] for before, after in pairwise(spans)), spans
    return made


def slices(made: Json, name: str, device: str = "GPU-a") -> list[tuple[str, int, int]]:
    """Of one allocation on one device: the name of each, and from when to when, in µs."""
    events = made["traceEvents"]
    (pid,) = {each["pid"] for each in events if each["name"] == "process_name" and device in each["args"]["name"]}
    tids = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == f"team/{name}/main" and each["pid"] == pid
    }
    return [
        (each["name"], each["ts"], each["ts"] + each["dur"])
        for each in events
        if each["ph"] == "X" and (each["pid"], each["tid"]) in tids
    ]


def flows(made: Json) -> list[tuple[int, int, int, int]]:
    """Each hand-over: from which thread, at which time, to which, and when."""
    events = made["traceEvents"]
    ends = {each["id"]: each for each in events if each["ph"] == "f"}
    begins = [each for each in events if each["ph"] == "s"]
    assert len(ends) == len(begins)
    assert all(ends[each["id"]]["pid"] == each["pid"] and ends[each["id"]]["bp"] == "e" for each in begins)
    return [(each["tid"], each["ts"], ends[each["id"]]["tid"], ends[each["id"]]["ts"]) for each in begins]


ALTERNATE = (
    turns(0, holding(-500, "one", 1), waiting(-400, "two")),
    turns(
        10_000,
        draining(1000, "one", 1),
        waiting(1100, "one"),
        holding(1100, "two", 2),
        draining(6000, "two", 2),
        holding(6200, "one", 3),
        idle(6200, "two"),
        idle(9000, "one"),
    ),
)


def test_two_that_alternate_are_two_threads_of_one_process_with_their_states_one_after_the_other() -> None:
    made = content(*ALTERNATE)
    assert slices(made, "one") == [
        ("holding", 0, 1000),
        ("draining", 1000, 1100),
        ("waiting", 1100, 6200),
        ("holding", 6200, 9000),
    ]
    assert slices(made, "two") == [("waiting", 0, 1100), ("holding", 1100, 6000), ("draining", 6000, 6200)]
    grants = {
        each["args"].get("grant") for each in made["traceEvents"] if each["ph"] == "X" and each["name"] != "waiting"
    }
    assert grants == {1, 2, 3}


def test_a_hand_over_leads_from_the_drain_to_the_slice_of_the_one_that_had_waited() -> None:
    (one, ts, two, then), *others = flows(content(*ALTERNATE))
    assert (ts, then, others) == (1000, 1100, [(two, 6000, one, 6200)])


def test_who_takes_a_device_that_nobody_had_was_handed_nothing() -> None:
    made = content(turns(0, holding(-5, "one", 1)), turns(10_000, idle(1000, "one"), holding(3000, "two", 2)))
    assert flows(made) == []
    # It waited, but not for the one that had it before.
    late = content(
        turns(0, holding(-5, "one", 1)), turns(10_000, idle(1000, "one"), waiting(2000, "two"), holding(3000, "two", 2))
    )
    assert flows(late) == []


def test_a_grant_that_is_made_ahead_begins_when_the_device_is_free() -> None:
    made = content(
        turns(0, holding(-5, "one", 1), waiting(-5, "two")),
        turns(
            10_000,
            draining(5000, "one", 1),
            holding(5000, "two", 2, begins_us=5500),
            idle(5400, "one"),
            holding(5400, "two", 2, begins_us=5400),
        ),
    )
    assert slices(made, "two") == [("waiting", 0, 5400), ("holding", 5400, 10_000)]
    assert [(ts, then) for _, ts, _, then in flows(made)] == [(5000, 5400)]


def test_a_grant_that_was_to_begin_earlier_than_it_could_begins_later() -> None:
    changes = (waiting(-5, "two"), holding(10, "two", 2, begins_us=500), holding(900, "two", 2, begins_us=850))
    made = content(turns(0, *changes), turns(10_000))
    assert slices(made, "two") == [("waiting", 0, 850), ("holding", 850, 10_000)]


def test_a_begin_that_cannot_be_makes_no_slices_overlap() -> None:
    changes = (waiting(300, "two"), holding(400, "two", 2), holding(500, "two", 2, begins_us=100))
    assert slices(content(turns(0, *changes), turns(10_000)), "two") == [("holding", 300, 10_000)]


def test_a_grant_that_is_called_back_before_it_begins_was_none() -> None:
    changes = (idle(-5, "two"), holding(10, "two", 2, begins_us=500), draining(400, "two", 2), idle(450, "two"))
    made = content(turns(0, *changes), turns(10_000))
    assert slices(made, "two") == [("waiting", 10, 400), ("draining", 400, 450)]


def test_several_that_hold_at_once_are_seen_to_and_hand_nothing_over() -> None:
    made = content(
        turns(0, waiting(-5, "one"), waiting(-5, "two")),
        turns(
            10_000, holding(100, "one", 1, beside=True), holding(200, "two", 2, beside=True), draining(700, "two", 2)
        ),
    )
    assert slices(made, "one") == [("waiting", 0, 100), ("holding beside", 100, 10_000)]
    assert slices(made, "two") == [("waiting", 0, 200), ("holding beside", 200, 700), ("draining", 700, 10_000)]
    assert flows(made) == []


def test_states_are_called_as_status_calls_them() -> None:
    made = content(
        turns(0),
        turns(
            10_000,
            waiting(100, "one", throttled=True),
            waiting(200, "one"),
            waiting(250, "one"),
            holding(300, "one", 1),
            holding(350, "one", 2),
            draining(400, "one", 1),
            draining(500, "one", 1, overlapping=True),
            idle(600, "one"),
            waiting(700, "one"),
            TurnChange(at_ns=BEGIN_NS + 800 * US, allocation_id="one", removed=True),
        ),
    )
    names = " ".join(name for name, _, _ in slices(made, "one"))
    assert names == "throttled waiting holding holding draining overlapping waiting"
    assert slices(made, "one")[-1] == ("waiting", 700, 800)


def test_what_was_lost_is_left_out_and_said() -> None:
    # Of the other nothing had changed.
    anew = (waiting(7000, "one"), holding(-5, "two", 1))
    made = content(
        turns(0, holding(-5, "one", 1), holding(-5, "two", 1)),
        turns(2000),
        turns(8000, *anew, lost_changes=123),
        turns(10_000),
    )
    assert slices(made, "one") == [("holding", 0, 2000), ("waiting", 7000, 10_000)]
    assert slices(made, "two") == [("holding", 0, 10_000)]
    assert [each["ts"] for each in made["traceEvents"] if each["name"] == "123 changes lost"] == [2000]
    assert made["otherData"]["lost_changes"] == 123


def test_of_a_message_with_more_to_come_what_follows_its_last_change_is_not_known() -> None:
    recording = recorded([turns(0, holding(-5, "one", 1)), turns(20_000, waiting(3000, "one"), more=True)])
    assert not recording.is_whole
    assert recording.end_ns == BEGIN_NS + 3 * MS
    recording.take(turns(20_000, idle(12_000, "one"), more=True))
    assert recording.is_whole


def test_one_that_goes_and_one_that_comes_meanwhile_keep_their_threads() -> None:
    gone = TurnChange(at_ns=BEGIN_NS + 1000 * US, allocation_id="one", removed=True)
    made = content(
        turns(0, holding(-5, "one", 1)),
        turns(2000, gone, idle(1500, "two"), allocations=[allocation("one"), allocation("two")]),
        turns(10_000, holding(3000, "two", 2), idle(4000, "two")),
    )
    assert slices(made, "one") == [("holding", 0, 1000)]
    assert slices(made, "two") == [("holding", 3000, 4000)]


def test_each_device_is_a_process_and_who_has_several_has_a_thread_on_each() -> None:
    both = allocation("both", "GPU-a", "GPU-b")
    elsewhere = allocation("elsewhere", "GPU-new")
    changes = (holding(-5, "both", 1), holding(-5, "elsewhere", 1))
    made = content(turns(0, *changes, allocations=[both, elsewhere]), turns(10_000))
    assert slices(made, "both", "GPU-a") == slices(made, "both", "GPU-b") == [("holding", 0, 10_000)]
    assert slices(made, "elsewhere", "GPU-new") == [("holding", 0, 10_000)]
    names = [each["args"]["name"] for each in made["traceEvents"] if each["name"] == "process_name"]
    assert names == ["recording", "gpu 0 t4 GPU-a", "gpu 1 t4 GPU-b", "GPU-new"]
    # A device of its own is nobody's successor.
    assert flows(made) == []


def test_a_recording_ends_when_it_was_to_end_or_where_it_broke_off() -> None:
    begun = turns(0, holding(-5, "one", 1))
    assert slices(content(begun, turns(12_000, idle(11_000, "one"))), "one") == [("holding", 0, 10_000)]
    broken = content(begun, turns(4000))
    assert slices(broken, "one") == [("holding", 0, 4000)]
    assert broken["otherData"]["seconds"] == 0.004


@pytest.mark.parametrize(("gpu_ns", "percent"), [([0, MS, 3 * MS], [50, 100]), ([5 * MS, 4 * MS, 9 * MS], [0, 100])])
def test_gpu_time_is_counted_from_message_to_message(gpu_ns: list[int], percent: list[float]) -> None:
    """What a client says may be a lie, or less than before where a process has ended."""
    times = [[GpuTime(allocation_id="one", gpu_ns=each)] for each in gpu_ns]
    made = content(
        turns(0, idle(-5, "one"), gpu_times=times[0]),
        turns(2000, gpu_times=times[1]),
        turns(4000, gpu_times=times[2]),
    )
    counted = [(each["ts"], each["args"]["percent"]) for each in made["traceEvents"] if each["ph"] == "C"]
    assert counted == [(0, percent[0]), (2000, percent[1])]


def test_its_clocks_are_said_exactly() -> None:
    told = content(turns(0), turns(10_000))["otherData"]
    assert int(told["begin_monotonic_ns"]) == BEGIN_NS
    assert int(told["begin_epoch_ns"]) == EPOCH_NS
    assert told["begin"] == "2023-11-14T22:13:20+00:00"
