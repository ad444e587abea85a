"""Memory that is lent: a GPU with pods on it, samples of what is in use, and what a policy promises then."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from sharemgr.cluster.lending import POLICIES
from sharemgr.cluster.lending.card import Asked, Card, Decision, Resident, Sample, Use, decide
from sharemgr.cluster.state.profiles import Ending, Profile, Run

GPU = "GPU-1"
USABLE_MIB = 32_000
NOW_S = 1000.0


def profile(peak_mib: int, time_to_peak_s: float = 20.0, use_mib: Sequence[int] = ()) -> Profile:
    """What is known of a program by one run that came to its end."""
    return Profile.of(
        (
            Run(
                ended_at_s=1.0,
                ending=Ending.COMPLETED,
                limit_mib=10**6,
                peak_mib=peak_mib,
                time_to_peak_s=time_to_peak_s,
                flat_s=10.0,
                use_mib=tuple(use_mib),
            ),
        )
    )


def use(samples: Sequence[tuple[float, float]], since_s: float = 0.0) -> Use:
    """What is in use of GPU, by samples of (seconds, MiB), each of which is believed."""
    found = Use(GPU, since_s, USABLE_MIB)
    for at_s, used_mib in samples:
        assert found.see(Sample(at_s, used_mib, GPU), at_s)
    return found


def pod(
    asked: Asked, samples: Sequence[tuple[float, float]] = (), bound_at_s: float = 0.0, promised_mib: int = 0
) -> Resident:
    """One that is there; its promise is its limit, unless it is given."""
    return Resident(asked, bound_at_s, promised_mib or asked.limit_mib, use(samples, bound_at_s))


def card(*pods: Resident, samples: Sequence[tuple[float, float]] = ((NOW_S, 0.0),), bound_at_s: float = 0.0) -> Card:
    """GPU with these pods, and what all of it is in use by."""
    return Card(USABLE_MIB, use(samples), list(pods), bound_at_s)


def steady(mib: float, from_s: float = 900.0) -> list[tuple[float, float]]:
    """Samples of one level, every seven seconds until NOW_S."""
    return [(at_s, mib) for at_s in np.arange(from_s, NOW_S + 1, 7.0)]


def decision(
    policy: str, on: Card, asked: Asked, profiles: dict[str, Profile] | None = None, now_s: float = NOW_S
) -> Decision:
    """What this policy promises to who asks now."""
    return decide(POLICIES[policy], on, profiles or {}, asked, now_s)


BORROWER = Asked(1000, 20_000, "a")


def safe_room(there: Card, known: dict[str, Profile] | None = None, now_s: float = NOW_S) -> float:
    """MiB that the policy `safe` has room for."""
    return POLICIES["safe"].room(there, known or {}, now_s).mib


POD = st.builds(
    lambda guarantee, more, key, samples, bound_at_s: pod(
        Asked(guarantee, guarantee + more, key),
        [(bound_at_s + 7 * n, min(mib, USABLE_MIB)) for n, mib in enumerate(samples)],
        bound_at_s,
    ),
    st.integers(0, 4000),
    st.integers(0, 16_000),
    st.sampled_from("abc"),
    st.lists(st.sampled_from([0.0, 300.0, 4000.0, 4010.0, 9000.0]), max_size=8),
    st.floats(900, 940),
)
KNOWN = st.dictionaries(st.sampled_from("abc"), st.builds(profile, st.integers(1, 9000), st.floats(0, 90)))
