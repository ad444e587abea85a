"""Lending by what each pod may still come to hold: by its profile, and by what was seen of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.lending import POLICIES
from sharemgr.cluster.lending.card import Asked, Resident
from sharemgr.cluster.state.profiles import Profile
from tests.kit.assigner.lending import (
    BORROWER,
    KNOWN,
    NOW_S,
    POD,
    USABLE_MIB,
    card,
    decision,
    pod,
    profile,
    safe_room,
    steady,
)

SAFE = {
    "not known, in flight: its limit": (None, [(990.0, 4000.0)], 980.0, 20_000),
    "not known, settled: 1.5 of what was seen": (None, steady(4000), 900.0, 6000),
    "not known, settled, near its limit": (None, steady(15_000), 900.0, 20_000),
    "not known, settled, but only a bare context": (None, steady(300), 900.0, 20_000),
    "not known, of one level but too young": (None, steady(4000, 985.0), 985.0, 20_000),
    "not known, still rising": (None, [(900 + 7 * n, 1000 + 40 * n) for n in range(14)], 880.0, 20_000),
    "known, in flight: 1.25 of its peak": (4000, [(990.0, 100.0)], 980.0, 5000),
    "known, in flight, without a sample": (4000, [], 980.0, 5000),
    "known, in flight, above its peak": (4000, [(990.0, 6000.0)], 980.0, 7500),
    "known, settled: its peak": (4000, steady(3900), 900.0, 4000),
    "known, settled above its peak: 1.05 of what was seen": (4000, steady(8000), 900.0, 8400),
    "known, was above its peak, now below": (4000, [(980.0, 9000.0), *steady(2000, 985.0)], 800.0, 9450),
    "known to be below its guarantee": (500, steady(500), 900.0, 1000),
}


@pytest.mark.parametrize(("peak_mib", "samples", "bound_at_s", "held_mib"), SAFE.values(), ids=SAFE)
def test_safe_counts_a_pod_for_what_it_may_still_come_to_hold(
    peak_mib: int | None, samples: list[tuple[float, float]], bound_at_s: float, held_mib: int
) -> None:
    known = {"a": profile(peak_mib)} if peak_mib else {}
    assert USABLE_MIB - safe_room(card(pod(BORROWER, samples, bound_at_s)), known) == held_mib


def test_safe_waits_for_as_long_as_the_program_ever_took_to_its_peak() -> None:
    there = card(pod(BORROWER, steady(3900), 900.0))
    assert USABLE_MIB - safe_room(there, {"a": profile(4000, time_to_peak_s=99.0)}) == 4000
    assert USABLE_MIB - safe_room(there, {"a": profile(4000, time_to_peak_s=101.0)}) == 5000
    room = POLICIES["safe"].room(there, {"a": profile(4000, time_to_peak_s=101.0)}, NOW_S)
    assert room.until_s == 1001.0, "unless a sample comes, it has settled then"
    assert USABLE_MIB - safe_room(there, {"a": profile(4000, time_to_peak_s=101.0)}, room.until_s) == 4000


ASKING = {
    "not known: its limit": (None, [], 20_000),
    "not known, one of its program settled there: 1.5 of that": (None, [pod(BORROWER, steady(4000), 900.0)], 6000),
    "not known, one of its program in flight there": (None, [pod(Asked(0, 5000, "a"), [], 990.0)], 20_000),
    "not known, one of another settled there": (None, [pod(Asked(0, 5000, "b"), steady(4000), 900.0)], 20_000),
    "known: 1.25 of its peak": (4000, [], 5000),
    "known, and one settled there: 1.1 of its peak": (4000, [pod(BORROWER, steady(3000), 900.0)], 4400),
    "known, and one settled above: 1.1 of that": (4000, [pod(BORROWER, steady(8000), 900.0)], 8800),
}


@pytest.mark.parametrize(("peak_mib", "there", "promised_mib"), ASKING.values(), ids=ASKING)
def test_safe_promises_a_pod_what_it_may_come_to_hold(
    peak_mib: int | None, there: list[Resident], promised_mib: int
) -> None:
    known = {"a": profile(peak_mib)} if peak_mib else {}
    assert decision("safe", card(*there), BORROWER, known).promised_mib == promised_mib


def test_safe_refuses_what_does_not_fit_and_says_why() -> None:
    there = card(pod(Asked(0, 28_000, "b")))
    refused = decision("safe", there, BORROWER, {"a": profile(4000)})
    assert refused.promised_mib is None
    assert refused.reason == "5000 MiB (its profile), of which 4000 are free (less what its pods may come to hold)"


@given(st.lists(POD, min_size=1, max_size=5), KNOWN)
def test_safe_never_promises_what_was_seen_in_use_or_is_guaranteed(
    pods: list[Resident], known: dict[str, Profile]
) -> None:
    kept = sum(max(each.asked.guarantee_mib, min(each.use.seen_mib, each.asked.limit_mib)) for each in pods)
    assert safe_room(card(*pods), known) <= USABLE_MIB - kept
