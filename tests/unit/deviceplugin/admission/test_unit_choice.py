import pytest

from deviceplugin.admission.check import check_assigned, check_unreserved
from deviceplugin.admission.unit_choice import Room, Wish, choose
from deviceplugin.pods.pending_pods import Applicant
from deviceplugin.units.ledger import Allocation, Owner, Terms
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import NoRoom, NotFound, Unavailable
from edgeshare.contract.units import unit_id

DEVICES = tuple(Device(name, index, "Simulated", 10_000) for index, name in enumerate(["a", "b", "c"]))
LEFT_MIB = {"a": 10_000, "b": 10_000, "c": 10_000}


def units(device: str, first: int = 0, count: int = 100) -> frozenset[str]:
    return frozenset(unit_id(device, unit) for unit in range(first, first + count))


ALL = units("a") | units("b") | units("c")


def applicant(name: str, percent: int, *devices: str, memory_mib: int = 0) -> Applicant:
    terms = Terms(request_percent=min(percent, 100), memory_mib=memory_mib)
    return Applicant(Owner("team", name, "main", f"uid-of-{name}"), percent, devices or None, terms)


def devices_of(chosen: list[str]) -> set[str]:
    return {unit.partition("::")[0] for unit in chosen}


@pytest.mark.parametrize(("percent", "devices"), [(30, ("b",)), (100, ("c",)), (200, ("c", "a"))])
def test_units_are_of_the_assigned_devices_and_of_no_other(percent: int, devices: tuple[str, ...]) -> None:
    one = applicant("one", percent, *devices)
    chosen = choose(Wish(ALL, (), (), percent), one, [], Room(DEVICES, LEFT_MIB))
    assert (len(chosen), devices_of(chosen)) == (percent, set(devices))
    check_assigned(one, chosen)
    with pytest.raises(NoRoom, match=r"team/one/main is assigned .*, but its units would be of b and c"):
        check_assigned(one, units("b") | units("c"))


def test_an_id_that_a_live_pod_holds_is_never_chosen_even_when_it_is_offered() -> None:
    held = units("b", 0, 60)
    chosen = choose(Wish(ALL, (), held, 40), applicant("one", 40, "b"), [], Room(DEVICES, LEFT_MIB))
    assert set(chosen) == units("b", 60, 40)
    with pytest.raises(NoRoom, match="team/one/main is assigned 41 units of GPU b, but free are 40 of b: make the pod"):
        choose(Wish(ALL, (), held, 41), applicant("one", 41, "b"), [], Room(DEVICES, LEFT_MIB))


def test_whole_devices_that_are_not_wholly_free_are_refused_with_the_counts() -> None:
    held = units("a", 0, 1)
    with pytest.raises(NoRoom, match="is assigned 100 units of GPU a and b, but free are 99 of a and 100 of b"):
        choose(Wish(ALL, (), held, 200), applicant("one", 200, "a", "b"), [], Room(DEVICES, LEFT_MIB))


def test_units_of_an_earlier_container_on_another_device_are_not_made_right() -> None:
    with pytest.raises(NoRoom, match="is assigned 30 units of GPU b, but"):
        choose(Wish(ALL, units("a", 0, 10), (), 30), applicant("one", 30, "b"), [], Room(DEVICES, LEFT_MIB))


def test_a_device_that_is_gone_or_not_healthy_is_said() -> None:
    with pytest.raises(NotFound, match="GPU z, which team/one/main is assigned, is not on this node"):
        choose(Wish(ALL, (), (), 30), applicant("one", 30, "z"), [], Room(DEVICES, LEFT_MIB))
    sick = (Device("a", 0, "Simulated", 10_000, healthy=False, cause="XID 79"), *DEVICES[1:])
    with pytest.raises(Unavailable, match="GPU a, which team/one/main is assigned, is not healthy: XID 79"):
        choose(Wish(ALL, (), (), 30), applicant("one", 30, "a"), [], Room(sick, LEFT_MIB))


def test_a_device_without_the_memory_is_said() -> None:
    room = Room(DEVICES, {**LEFT_MIB, "b": 2999})
    with pytest.raises(NoRoom, match="team/one/main is assigned GPU b, which has only 2999 MiB free"):
        choose(Wish(ALL, (), (), 30), applicant("one", 30, "b"), [], room)


def test_who_packs_by_itself_keeps_off_what_is_assigned_to_others() -> None:
    others = [applicant("later", 60, "a"), applicant("large", 100, "b")]
    room = Room(DEVICES, LEFT_MIB)
    assert devices_of(choose(Wish(ALL, (), (), 40), applicant("one", 40), others, room)) == {"a"}
    assert devices_of(choose(Wish(ALL, (), (), 41), applicant("one", 41), others, room)) == {"c"}
    # Also where nobody knows who it is.
    assert devices_of(choose(Wish(ALL, (), (), 41), None, others, room)) == {"c"}
    with pytest.raises(
        NoRoom, match="where 50 units are free, they are assigned to pods that are still to be admitted"
    ):
        choose(Wish(units("a") | units("b"), (), (), 50), applicant("one", 50), others, room)


def test_who_is_assigned_a_device_need_not_keep_off_others() -> None:
    others = [applicant("later", 80, "a")]
    chosen = choose(Wish(ALL, (), (), 40), applicant("one", 40, "a"), others, Room(DEVICES, LEFT_MIB))
    assert devices_of(chosen) == {"a"}


def test_all_that_is_left_is_not_taken_from_those_that_are_assigned_it() -> None:
    held = [Allocation("1", units("a", 0, 40), "")]
    check_unreserved(units("a", 40, 40), [applicant("later", 20, "a")], held)
    with pytest.raises(NoRoom, match="21 units of GPU a are assigned to pods that are still to be admitted"):
        check_unreserved(units("a", 40, 40), [applicant("later", 21, "a")], held)
