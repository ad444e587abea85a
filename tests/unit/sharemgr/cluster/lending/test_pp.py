"""Lending by what is predicted to be in use."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.lending import pp
from sharemgr.cluster.lending.card import Asked
from tests.kit.assigner.lending import NOW_S, USABLE_MIB, card, decision, pod

SERIES = st.lists(st.floats(0, USABLE_MIB), min_size=12, max_size=60)


@given(SERIES)
def test_pp_predicts_by_least_squares_where_the_memory_resembles_what_it_was(values: list[float]) -> None:
    free = np.array(values)
    earlier, later = free[:-10], free[10:]
    predicted = pp.predict(free)
    if earlier.std() < 1e-3 or later.std() < 1e-3:
        return
    likeness = float(np.corrcoef(earlier, later)[0, 1])
    if abs(likeness - pp.LIKENESS_MIN) > 1e-6:
        assert (predicted is not None) == (likeness > pp.LIKENESS_MIN)
    if predicted is not None:
        slope, start = np.polyfit(earlier, later, 1)
        assert predicted == pytest.approx(start + slope * free[-10], rel=1e-6, abs=1e-3)


def test_pp_lends_what_it_predicts_where_that_is_more() -> None:
    falling = [(at_s, max(0.0, 30_000 - 900 * (at_s - 960))) for at_s in np.arange(960.0, NOW_S + 1, 1.0)]
    there = card(pod(Asked(0, 30_000, "a")), samples=falling, bound_at_s=960.0)
    before, after = (decision(policy, there, Asked(0, 31_000, "b")).promised_mib for policy in ("cbp", "pp"))
    assert (before, after) == (None, 31_000)
    assert "predicted" in decision("pp", there, Asked(0, 31_000, "b")).reason
