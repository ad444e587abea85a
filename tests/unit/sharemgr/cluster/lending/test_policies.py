"""Lending policies: how much of a GPU's memory a pod is promised, and by what."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.lending import POLICIES
from sharemgr.cluster.lending.card import NO_SAMPLE_S, Asked, Resident
from sharemgr.cluster.state.profiles import Profile
from tests.kit.assigner.lending import BORROWER, KNOWN, NOW_S, POD, USABLE_MIB, card, decision, pod, steady


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_guaranteed_is_promised_whatever_is_lent_and_is_never_over_committed(policy: str) -> None:
    full = card(pod(Asked(2000, 32_000, "a"), steady(30_000)), samples=steady(30_000))
    assert decision(policy, full, Asked(30_000, 30_000, "b")).promised_mib == 30_000
    refused = decision(policy, full, Asked(30_001, 30_001, "b"))
    assert refused.promised_mib is None
    assert "30000 are not guaranteed to others" in refused.reason
    assert decision(policy, full, Asked(30_001, 31_000, "b")).promised_mib is None


@pytest.mark.parametrize("policy", [name for name, policy in POLICIES.items() if policy.needs_samples])
@pytest.mark.parametrize("samples", [(), ((NOW_S - NO_SAMPLE_S - 1, 0.0),), ((NOW_S + 1, 0.0),)])
def test_without_samples_of_now_only_guarantees_are_promised_and_it_is_said(
    policy: str, samples: Sequence[tuple[float, float]]
) -> None:
    found = decision(policy, card(samples=samples), BORROWER)
    assert found.promised_mib == BORROWER.guarantee_mib
    assert found.reason == "no samples of what is in use: guarantees alone"
    assert decision(policy, card(samples=[(NOW_S, 0.0)]), BORROWER).promised_mib == BORROWER.limit_mib


def test_res_ag_believes_what_is_declared() -> None:
    there = card(pod(Asked(0, 12_000, "a")))
    assert decision("res-ag", there, BORROWER).promised_mib == 20_000
    assert decision("res-ag", there, Asked(0, 20_001, "a")).promised_mib is None


@given(st.sampled_from(sorted(POLICIES)), st.lists(POD, max_size=5), KNOWN, POD, st.integers(0, 9000))
def test_a_promise_is_between_guarantee_and_limit_and_guarantees_fit(
    policy: str, pods: list[Resident], known: dict[str, Profile], asking: Resident, used_mib: int
) -> None:
    there, asked = card(*pods, samples=steady(used_mib)), asking.asked
    found = decision(policy, there, asked, known)
    if found.promised_mib is not None:
        assert asked.guarantee_mib <= found.promised_mib <= asked.limit_mib
        assert there.guaranteed_mib + asked.guarantee_mib <= USABLE_MIB
    again = decision(policy, there, asked, known)
    assert found == again, "nothing is kept between two questions"
