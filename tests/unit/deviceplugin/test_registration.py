from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.kubelet.registration import FIRST_PAUSE_S, LONGEST_PAUSE_S, pause_s


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_pause_grows_to_a_bound_and_is_never_nothing(failures: int, jitter: float) -> None:
    pause = pause_s(failures, jitter)
    assert FIRST_PAUSE_S / 2 <= pause <= LONGEST_PAUSE_S
    assert pause_s(failures + 1, jitter) >= pause


def test_plugins_that_failed_together_do_not_try_again_together() -> None:
    assert len({pause_s(5, jitter / 10) for jitter in range(10)}) == 10
