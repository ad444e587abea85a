"""The sliding window never counts more than fits into it, and forgets in time."""

import random

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.window import Sums, Window


def test_what_was_held_counts_until_the_window_has_passed() -> None:
    window = Window(10 * S, 0)
    window.add_wait(0, 1 * S)
    window.add_held(1 * S, 3 * S)
    window.add_gpu(1 * S, 3 * S, S)
    assert window.sums(3 * S) == Sums(2 * S, 1 * S, 1 * S, S)
    assert window.sums(10 * S + S // 2) == Sums(2 * S, 1 * S, S // 2, S)
    assert window.sums(11 * S) == Sums(2 * S, 1 * S, 0, S)
    assert window.sums(12 * S) == Sums(1 * S, S // 2, 0, 0)
    assert window.sums(13 * S) == Sums(0, 0, 0, 0)


def test_what_is_told_of_late_counts_when_it_was() -> None:
    window = Window(10 * S, 0)
    window.add_held(5 * S, 6 * S)
    window.add_wait(1 * S, 2 * S)
    assert window.sums(6 * S) == Sums(1 * S, 0, 1 * S, 1 * S)
    assert window.sums(11 * S + S // 2).waited_ns == S // 2


def test_of_what_lasts_longer_than_the_window_all_of_the_window_is_in_it() -> None:
    window = Window(10 * S, 0)
    assert window.inside_ns(3 * S) == 3 * S
    assert window.inside_ns(30 * S) == 10 * S


def test_a_hold_longer_than_the_window_fills_it_exactly() -> None:
    window = Window(10 * S, 5 * S)
    window.add_held(5 * S, 3605 * S + 123)
    assert window.sums(3605 * S + 123).held_ns == pytest.approx(10 * S, abs=2)
    assert window.sums(3605 * S + 123).held_ns <= 10 * S


def test_the_longest_wait_is_reported() -> None:
    window = Window(10 * S, 0)
    for end_ns, wait_ns in ((S, 5 * MS), (S + 1, 9 * MS), (2 * S, 1 * MS)):
        window.add_wait(end_ns - wait_ns, end_ns)
    assert window.sums(3 * S).longest_wait_ns == 9 * MS
    assert window.sums(11 * S + 200 * MS).longest_wait_ns == 1 * MS


@pytest.mark.parametrize("seed", range(20))
def test_back_to_back_holds_add_up_to_the_window_whatever_their_lengths(seed: int) -> None:
    rng = random.Random(seed)
    windows = [Window(10 * S, 0) for _ in range(3)]
    now_ns = 0
    for _ in range(2000):
        length_ns = rng.choice((1, 999, 5 * MS, 17 * MS, 350 * MS))
        rng.choice(windows).add_held(now_ns, now_ns + length_ns)
        now_ns += length_ns
        total_ns = sum(window.sums(now_ns).held_ns for window in windows)
        assert total_ns <= min(now_ns, 10 * S)
        # Of the oldest bucket it is not known which part of it a window held.
        assert total_ns >= min(now_ns, 10 * S) - len(windows)


def all_ns(window: Window) -> tuple[int, int, int]:
    return window.held.all_ns, window.gpu.all_ns, window.waited.all_ns


@pytest.mark.parametrize("seed", range(20))
def test_in_all_it_has_had_what_it_was_ever_told_of_however_long_ago_and_for_however_long(seed: int) -> None:
    rng = random.Random(seed)
    window = Window(10 * S, 0)
    now_ns = held_ns = gpu_ns = waited_ns = 0
    for _ in range(500):
        now_ns += rng.choice((1, 5 * MS, 350 * MS, 3 * S, 40 * S))
        # Told of late: also what was over before the window began.
        begin_ns = now_ns - min(now_ns, rng.choice((1, 999, 17 * MS, 350 * MS, 12 * S, 3600 * S)))
        end_ns = rng.choice((now_ns, begin_ns + (now_ns - begin_ns) // 3))
        length_ns = end_ns - begin_ns
        if not length_ns:
            continue
        match rng.randrange(3):
            case 0:
                window.add_used(begin_ns, end_ns, length_ns // 7, length_ns // 5)
                gpu_ns, held_ns = gpu_ns + length_ns // 7, held_ns + length_ns // 5
            case 1:
                window.add_held(begin_ns, end_ns)
                held_ns += length_ns
            case _:
                window.add_wait(begin_ns, end_ns)
                waited_ns += length_ns
        if rng.random() < 0.3:
            window.sums(now_ns)
        assert all_ns(window) == (held_ns, gpu_ns, waited_ns)
