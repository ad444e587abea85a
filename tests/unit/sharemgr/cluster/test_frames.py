"""How many frames that ask for nothing are let through."""

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.server.frames import (
    ANSWER_BYTES_PER_SPARE,
    DATA_BYTES_MIN,
    PREFACE_BYTES,
    SPARE_MAX,
    SPARE_PER_ANSWER,
    FrameBudget,
)
from sharemgr.cluster.server.serving import BODY_BYTES_MAX

PING = PingFrame(opaque_data=bytes(8)).serialize()


def begun() -> FrameBudget:
    budget = FrameBudget()
    assert budget.spend(bytes(PREFACE_BYTES))
    return budget


def room(budget: FrameBudget) -> int:
    """How many it still lets through."""
    count = 0
    while budget.spend(PING):
        count += 1
    return count


@pytest.mark.parametrize(
    "frame",
    [
        PingFrame(opaque_data=bytes(8)),
        SettingsFrame(),
        SettingsFrame(flags=["ACK"]),
        RstStreamFrame(1),
        PriorityFrame(1),
        WindowUpdateFrame(0, 1),
        ContinuationFrame(1, b"a" * 5000),
        DataFrame(1),
        DataFrame(1, b"a" * (DATA_BYTES_MIN - 1)),
    ],
    ids=lambda frame: f"{type(frame).__name__} {len(frame.serialize())}",
)
def test_what_asks_for_nothing_is_let_through_so_often(frame: Frame) -> None:
    budget = begun()
    assert budget.spend(frame.serialize() * SPARE_MAX)
    assert not budget.spend(frame.serialize())


@pytest.mark.parametrize(
    "frame",
    [
        HeadersFrame(1, b"abc", flags=["END_HEADERS", "END_STREAM"]),
        DataFrame(1, b"a" * DATA_BYTES_MIN),
        DataFrame(1, b"a", flags=["END_STREAM"]),
        DataFrame(1, flags=["END_STREAM"]),
    ],
    ids=str,
)
def test_a_request_costs_nothing(frame: Frame) -> None:
    budget = begun()
    assert budget.spend(frame.serialize() * 2 * SPARE_MAX)
    assert room(budget) == SPARE_MAX


@pytest.mark.parametrize("sent_bytes", [0, 10 * ANSWER_BYTES_PER_SPARE])
def test_an_answer_gives_some_back_and_more_if_it_is_long(sent_bytes: int) -> None:
    budget = begun()
    assert budget.spend(PING * SPARE_MAX)
    budget.answered(sent_bytes)
    assert room(budget) == SPARE_PER_ANSWER + sent_bytes // ANSWER_BYTES_PER_SPARE


def test_room_for_the_longest_answer_can_be_given_back_as_go_gives_it() -> None:
    budget, frames = begun(), 2 * BODY_BYTES_MAX // 4096
    for _ in range(3):
        budget.answered(BODY_BYTES_MAX)
        assert budget.spend(WindowUpdateFrame(1, 4096).serialize() * frames)


def test_no_more_is_saved_up_than_there_is_at_first() -> None:
    budget = begun()
    budget.answered(1 << 30)
    assert room(budget) == SPARE_MAX


def test_who_has_sent_too_much_stays_over() -> None:
    budget = begun()
    assert not budget.spend(PING * (SPARE_MAX + 1))
    assert not budget.spend(b"")


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 9), st.sampled_from([0, 1, 4, 5])), max_size=20),
    st.lists(st.integers(0, 40_000), max_size=20),
)
def test_frames_count_the_same_however_they_are_cut(frames: list[tuple[int, int, int]], cuts: list[int]) -> None:
    heads = [length.to_bytes(3, "big") + bytes([kind, flags]) + bytes(4) for length, kind, flags in frames]
    sent = bytes(PREFACE_BYTES) + b"".join(head + bytes(frames[i][0]) for i, head in enumerate(heads))
    asking = sum(kind == 1 or (kind == 0 and (length >= 1024 or flags & 1 == 1)) for length, kind, flags in frames)
    budget, begin = FrameBudget(), 0
    for end in [*sorted(cut for cut in cuts if cut < len(sent)), len(sent)]:
        assert budget.spend(sent[begin:end])
        begin = end
    assert room(budget) == SPARE_MAX - (len(frames) - asking)
