"""Lending by what others have in use at their 80th percentile, and by whether they are alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.lending import cbp, cbp_knots
from sharemgr.cluster.lending.card import Asked
from tests.kit.assigner.lending import BORROWER, card, decision, pod, profile, steady


def test_cbp_lends_above_the_80th_percentile_of_what_is_in_use_while_it_is_steady() -> None:
    there = card(pod(Asked(0, 30_000, "a")), samples=steady(12_000))
    assert decision("cbp", there, BORROWER).promised_mib == 20_000
    assert decision("cbp", there, Asked(0, 20_001, "a")).promised_mib is None
    # Half of the time nothing, half of the time all: the free memory varies by as much as it is in the mean.
    unsteady = [(at_s, 31_000.0 * (index % 2)) for index, (at_s, _) in enumerate(steady(0))]
    there = card(pod(Asked(0, 30_000, "a")), samples=unsteady)
    assert decision("cbp", there, Asked(0, 2001, "a")).promised_mib is None
    assert "not steady" in decision("cbp", there, Asked(0, 2001, "a")).reason
    assert decision("cbp", there, Asked(0, 2000, "a")).promised_mib == 2000, "as by what is declared"


def test_cbp_looks_back_to_the_last_bind_and_20_seconds_at_least() -> None:
    grew = [(900.0, 5000.0), (980.0, 5000.0), (990.0, 20_000.0)]
    pods = (pod(Asked(0, 30_000, "a")),)
    assert decision("cbp", card(*pods, samples=grew, bound_at_s=995.0), Asked(0, 12_001, "b")).promised_mib is None
    assert decision("cbp", card(*pods, samples=grew, bound_at_s=900.0), Asked(0, 26_000, "b")).promised_mib == 26_000


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=60))
def test_percentiles_are_interpolated(values: list[float]) -> None:
    assert cbp.percentile(np.array(values)) == pytest.approx(float(np.percentile(values, 80)))


def test_cbp_knots_counts_a_pod_for_its_80th_percentile_where_it_is_unlike_those_there() -> None:
    ramp = (0, 200, 400, 5000, 5000, 5000)
    known = {"a": profile(5000, use_mib=ramp)}
    falling = pod(Asked(0, 30_000, "b"), [(900 + 7 * n, 9000 - mib) for n, mib in enumerate(ramp)], 0.0, 9000)
    rising = pod(Asked(0, 30_000, "b"), [(900 + 7 * n, mib) for n, mib in enumerate(ramp)], 0.0, 9000)
    assert decision("cbp-knots", card(falling), BORROWER, known).promised_mib == 5000
    assert decision("cbp-knots", card(rising), BORROWER, known).promised_mib == BORROWER.limit_mib
    assert decision("cbp-knots", card(falling), BORROWER).promised_mib == BORROWER.limit_mib, "no run is known"
    assert decision("cbp-knots", card(pod(Asked(0, 30_000, "b"))), BORROWER, known).promised_mib is None, "30,000 held"
    assert cbp_knots.correlation((1, 1, 1, 1), (1, 2, 3, 4)) == 0
