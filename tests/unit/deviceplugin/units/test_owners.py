from dataclasses import replace

import pytest

from deviceplugin.units.ledger import Allocation, Owner, Terms
from deviceplugin.units.owners import attach_owners, find_owner, missing, unclaimed
from edgeshare.contract.errors import NoRoom

A, B = frozenset({"GPU-a::00", "GPU-a::01"}), frozenset({"GPU-a::02"})
TRAINER = Owner("team", "trainer", "main")
MINE = Allocation("gpu-1", A, "")


def test_a_new_allocation_gets_the_owner_that_the_kubelet_lists() -> None:
    listing = {("team", "trainer"): {"main": A, "side": frozenset[str]()}, ("team", "other"): {"main": B}}
    assert attach_owners([MINE], listing) == [replace(MINE, owner=TRAINER)]


def test_what_is_known_of_an_owner_stays() -> None:
    known = replace(MINE, owner=replace(TRAINER, pod_uid="u1"), terms=Terms(2))
    assert attach_owners([known], {("team", "trainer"): {"main": A}}) == []


def test_another_owners_terms_are_unknown() -> None:
    known = replace(MINE, owner=Owner("team", "trainer", "init", listed=False), terms=Terms(2))
    assert attach_owners([known], {("team", "trainer"): {"main": A}}) == [MINE_OWNED]


MINE_OWNED = replace(MINE, owner=TRAINER)


def test_units_listed_for_two_pods_belong_to_neither() -> None:
    listing = {("team", "trainer"): {"main": A}, ("team", "other"): {"main": A}}
    assert attach_owners([MINE], listing) == []
    with pytest.raises(NoRoom, match="team/other/main and team/trainer/main"):
        find_owner(A, listing)


def test_an_allocation_is_missing_when_its_container_is_listed_without_it() -> None:
    assert missing([MINE_OWNED], {("team", "trainer"): {"main": A}}) == []
    assert missing([MINE_OWNED], {("team", "trainer"): {"main": B}}) == [MINE_OWNED]
    assert missing([MINE_OWNED], {}) == [MINE_OWNED]
    assert missing([MINE], {}) == []


def test_an_init_containers_allocation_lasts_as_long_as_its_pod_is_listed() -> None:
    init = replace(MINE, owner=Owner("team", "trainer", "fetch", listed=False))
    assert missing([init], {("team", "trainer"): {"main": frozenset()}}) == []
    assert missing([init], {("team", "other"): {}}) == [init]


def test_an_allocation_without_an_owner_is_unclaimed_while_nobody_has_any_of_its_units() -> None:
    assert unclaimed([MINE], {("team", "trainer"): {"main": B}, ("team", "idle"): {"main": frozenset()}}) == [MINE]
    assert unclaimed([MINE], {}) == [MINE]
    assert unclaimed([MINE_OWNED], {}) == []


def test_units_that_a_later_container_has_a_part_of_are_claimed() -> None:
    part = frozenset({"GPU-a::00"})
    assert unclaimed([MINE], {("team", "trainer"): {"main": part}}) == []
    # Also while the kubelet lists nobody, as when it starts.
    assert unclaimed([MINE, replace(MINE_OWNED, id="gpu-2", unit_ids=part)], {}) == []


def test_units_that_a_later_container_takes_over_are_of_an_init_container_of_its_pod() -> None:
    found = find_owner(A, {("team", "trainer"): {"main": frozenset({"GPU-a::00"})}})
    assert found == Owner("team", "trainer", "", listed=False)


def test_units_that_nobody_lists_have_no_owner_yet() -> None:
    assert find_owner(A, {("team", "trainer"): {"main": B}}) is None
