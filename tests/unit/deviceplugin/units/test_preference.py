from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.units.preference import by_device, choose_units
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import unit_id

DEVICES = ["GPU-b", "GPU-a", "GPU-c"]
ALL = [unit_id(device, unit) for device in DEVICES for unit in range(100)]


@dataclass(frozen=True)
class Offer:
    available: list[str]
    must_include: list[str]
    held: list[str]
    size: int


@st.composite
def offers(draw: st.DrawFn) -> Offer:
    """Any state of a node of three GPUs that a kubelet could tell of, and some that it could not."""
    available: list[str] = []
    for device in DEVICES:
        free = draw(st.sampled_from([0, 100]) | st.integers(0, 100))
        first = draw(st.integers(0, 100 - free))
        available += [unit_id(device, unit) for unit in range(first, first + free)]
    held = draw(st.lists(st.sampled_from(available), max_size=30)) if available else []
    must_include = draw(st.lists(st.sampled_from(ALL), max_size=3, unique=True))
    size = draw(st.sampled_from([1, 20, 50, 99, 100, 200, 300]) | st.integers(-5, 400))
    return Offer(sorted({*available, *must_include}), must_include, held, size)


def choose(offer: Offer) -> list[str]:
    return choose_units(offer.available, offer.must_include, offer.held, offer.size, DEVICES)


@given(offers())
def test_a_choice_is_of_the_size_asked_from_what_is_offered_and_not_held(offer: Offer) -> None:
    chosen = choose(offer)
    if chosen:
        assert len(chosen) == len(set(chosen)) == offer.size
        assert set(offer.must_include) <= set(chosen) <= set(offer.available)
        assert not set(chosen) & (set(offer.held) - set(offer.must_include))


@given(offers())
def test_a_choice_never_straddles_devices_nor_shares_a_whole_one(offer: Offer) -> None:
    counts = {device: len(units) for device, units in by_device(choose(offer)).items()}
    if offer.size < 100:
        assert len(counts) <= 1
    else:
        assert set(counts.values()) <= {100}


@given(offers())
def test_there_is_a_choice_whenever_a_right_one_exists(offer: Offer) -> None:
    free = by_device((set(offer.available) - set(offer.held)) | set(offer.must_include))
    bound = set(by_device(offer.must_include))
    if offer.size < 100:
        fits = [d for d in free if len(free[d]) >= offer.size and bound <= {d}]
        exists = bool(fits) and max(1, len(offer.must_include)) <= offer.size
    else:
        whole = {d for d in free if len(free[d]) == 100}
        count = offer.size // 100
        exists = offer.size % 100 == 0 and len(whole) >= count >= len(bound) and bound <= whole
    assert bool(choose(offer)) == exists


@given(offers())
def test_a_part_goes_to_the_fullest_device_that_has_room(offer: Offer) -> None:
    free = by_device(set(offer.available) - set(offer.held))
    if not offer.must_include and 1 <= offer.size < 100 and (chosen := by_device(choose(offer))):
        (device,) = chosen
        fitting = [len(units) for units in free.values() if len(units) >= offer.size]
        assert len(free[device]) == min(fitting)


def test_the_same_question_has_the_same_answer_in_any_order_of_ids() -> None:
    assert choose_units(ALL, [], [], 30, DEVICES) == choose_units(ALL[::-1], [], [], 30, DEVICES)


def test_devices_that_tie_are_taken_in_the_nodes_order() -> None:
    assert choose_units(ALL, [], [], 2, DEVICES) == ["GPU-b::00", "GPU-b::01"]


def test_an_id_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no unit of a device"):
        choose_units(["nvidia0"], [], [], 1, DEVICES)
