from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.counters import BUCKETS_S, Durations
from edgeshare.contract.units import NS_PER_S


@given(st.lists(st.integers(0, 10 * NS_PER_S)))
def test_a_bucket_counts_what_took_at_most_its_bound(durations_ns: list[int]) -> None:
    durations = Durations()
    for duration_ns in durations_ns:
        durations.add(duration_ns)
    expected = [sum(each / NS_PER_S <= bound for each in durations_ns) for bound in BUCKETS_S]
    assert durations.cumulative() == [*expected, len(durations_ns)]
    assert durations.total_ns == sum(durations_ns)
