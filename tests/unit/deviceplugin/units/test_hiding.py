"""What is told of several devices' free units is what one container can be given."""

from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.units.hiding import SETTLE_NS, Hidden, placeable
from deviceplugin.units.preference import by_device, choose_units
from edgeshare.contract.units import unit_id

Free = dict[str, list[str]]


def units(device: str, first: int, count: int) -> list[str]:
    return [unit_id(device, unit) for unit in range(first, first + count)]


def node(*sizes: int) -> Free:
    """A device for each of these, with so many free units."""
    return {f"GPU-{place}": units(f"GPU-{place}", 0, size) for place, size in enumerate(sizes)}


@st.composite
def nodes(draw: st.DrawFn, most: int = 5) -> Free:
    """Any free units of a node's devices."""
    free = {}
    for place in range(draw(st.integers(1, most))):
        count = draw(st.sampled_from([0, 1, 40, 99, 100]) | st.integers(0, 100))
        free[f"GPU-{place}"] = units(f"GPU-{place}", draw(st.integers(0, 100 - count)), count)
    return free


memories = st.dictionaries(st.sampled_from([f"GPU-{place}" for place in range(5)]), st.integers(-20, 100))


def told(free: Free, **memory_percent: int) -> dict[str, int]:
    """How many units are told of each device."""
    shown = placeable(free, {device.replace("_", "-"): percent for device, percent in memory_percent.items()})
    return {device: len(of) for device, of in by_device(shown).items()}


@given(nodes(), memories)
def test_whatever_a_container_may_ask_for_and_is_no_more_than_is_told_can_be_given(
    free: Free, memory_percent: dict[str, int]
) -> None:
    shown = placeable(free, memory_percent)
    for size in [*range(1, 100), *range(100, 600, 100)]:
        if size <= len(shown):
            assert len(choose_units(shown, [], [], size, list(free))) == size


@given(nodes(), memories)
def test_what_is_told_is_free_and_where_anything_is_free_it_is_something(
    free: Free, memory_percent: dict[str, int]
) -> None:
    shown = placeable(free, memory_percent)
    everything = {unit for of in free.values() for unit in of}
    assert shown <= everything
    assert bool(shown) == bool(everything)


@given(nodes())
def test_no_more_could_be_told(free: Free) -> None:
    sizes = [len(of) for of in free.values()]
    whole = sizes.count(100)

    def fits(size: int) -> bool:
        return size <= max(sizes) if size < 100 else size % 100 == 0 and size // 100 <= whole

    asked = [size for size in [*range(1, 100), *range(100, 600, 100)] if size <= sum(sizes)]
    refused = [size for size in asked if not fits(size)]
    assert len(placeable(free, {})) == min([sum(sizes), *(size - 1 for size in refused)])


@given(nodes(most=1), memories)
def test_of_one_device_all_is_told(free: Free, memory_percent: dict[str, int]) -> None:
    assert placeable(free, memory_percent) == set(free["GPU-0"])


def test_of_devices_that_all_have_something_taken_the_one_with_most_is_told() -> None:
    assert told(node(40, 40)) == {"GPU-0": 40}
    assert told(node(30, 40)) == {"GPU-1": 40}


def test_beside_a_free_device_what_is_left_of_others_is_told_so_that_parts_still_go_there_first() -> None:
    assert told(node(40, 100)) == {"GPU-0": 40, "GPU-1": 100}
    assert told(node(70, 100, 60, 100)) == {"GPU-0": 70, "GPU-1": 100, "GPU-2": 29, "GPU-3": 100}


def test_the_device_that_is_told_has_the_memory_for_its_part() -> None:
    assert told(node(70, 60), GPU_0=10, GPU_1=60) == {"GPU-1": 60}
    # None has it: then it is the units that count.
    assert told(node(70, 60), GPU_0=0, GPU_1=0) == {"GPU-0": 70}


def look(hidden: Hidden, free: Free, now_ns: int) -> tuple[int, int | None]:
    """How many units are hidden, and when one has to look again."""
    everything = frozenset(unit for of in free.values() for unit in of)
    again_ns = hidden.look(everything, everything - placeable(free, {}), now_ns)
    return len(hidden.units), again_ns


def test_what_was_bound_at_once_is_admitted_before_anything_is_hidden() -> None:
    hidden = Hidden()
    assert look(hidden, node(100, 100), 0) == (0, None)
    assert look(hidden, node(40, 100), 1) == (0, None)
    assert look(hidden, node(40, 40), 2) == (0, SETTLE_NS)
    # Nothing was handed out: something else of the node changed.
    assert look(hidden, node(40, 40), SETTLE_NS) == (0, 2)
    assert look(hidden, node(0, 40), SETTLE_NS + 1) == (0, None)
    assert look(hidden, node(0, 40), 9 * SETTLE_NS) == (0, None)


def test_what_is_not_placeable_is_hidden_when_it_has_been_quiet_for_a_while() -> None:
    hidden = Hidden()
    assert look(hidden, node(40, 40), 5) == (0, SETTLE_NS)
    assert look(hidden, node(40, 40), 4 + SETTLE_NS) == (0, 1)
    assert look(hidden, node(40, 40), 5 + SETTLE_NS) == (40, None)


def test_what_became_placeable_is_shown_at_once() -> None:
    hidden = Hidden()
    look(hidden, node(40, 40), 0)
    assert look(hidden, node(40, 40), SETTLE_NS) == (40, None)
    assert look(hidden, node(40, 100), SETTLE_NS + 1) == (0, None)


def test_what_is_told_in_exchange_for_other_units_waits_until_those_are_hidden() -> None:
    hidden = Hidden()
    look(hidden, node(40, 40), 0)
    look(hidden, node(40, 40), SETTLE_NS)
    # Half of what is told is handed out: the other device has more now.
    free = node(20, 40)
    assert look(hidden, free, SETTLE_NS + 1) == (40, SETTLE_NS)
    assert look(hidden, free, 2 * SETTLE_NS + 1) == (20, None)
    assert hidden.units == set(free["GPU-0"])


def test_what_is_handed_out_all_the_same_is_hidden_no_more() -> None:
    hidden = Hidden()
    look(hidden, node(40, 40), 0)
    look(hidden, node(40, 40), SETTLE_NS)
    # Ten of the second's, which were on their way when they were hidden.
    free = node(40, 30)
    assert look(hidden, free, SETTLE_NS + 1) == (30, None)
    assert hidden.units <= set(free["GPU-1"])
