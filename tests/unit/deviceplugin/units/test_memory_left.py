from deviceplugin.units.ledger import Allocation, Owner, memory_left_mib
from edgeshare.contract.devices import Device
from edgeshare.contract.units import memory_cap_mib, unit_id

DEVICES = {name: Device(name, index, "Simulated", 10_000) for index, name in enumerate(["GPU-a", "GPU-b"])}
MAIN = Owner("team", "trainer", "main")
INIT = Owner("team", "trainer", "fetch", listed=False)


def allocation(
    name: str, device: str, first: int, count: int, memory_mib: int = 0, owner: Owner | None = MAIN
) -> Allocation:
    units = frozenset(unit_id(device, unit) for unit in range(first, first + count))
    return Allocation(name, units, "", owner, memory_mib=memory_mib)


def test_a_cap_counts_as_asked_for_or_else_as_the_part_of_the_device() -> None:
    held = [allocation("1", "GPU-a", 0, 30), allocation("2", "GPU-a", 30, 10, 4000)]
    assert memory_left_mib(DEVICES, held) == {"GPU-a": 3000, "GPU-b": 10_000}


def test_an_init_container_counts_until_a_later_one_has_its_units() -> None:
    init = allocation("1", "GPU-a", 0, 50, owner=INIT)
    assert memory_left_mib(DEVICES, [init])["GPU-a"] == 5000
    assert memory_left_mib(DEVICES, [init, allocation("2", "GPU-a", 0, 20)])["GPU-a"] == 8000


def test_a_cap_is_of_each_device() -> None:
    whole = Allocation("1", frozenset(unit_id(d, u) for d in DEVICES for u in range(100)), "", MAIN, memory_mib=4000)
    assert memory_left_mib(DEVICES, [whole]) == {"GPU-a": 6000, "GPU-b": 6000}


def test_what_is_on_a_device_that_went_away_counts_nowhere() -> None:
    assert memory_left_mib(DEVICES, [allocation("1", "GPU-z", 0, 30)]) == {"GPU-a": 10_000, "GPU-b": 10_000}


def test_a_container_needs_its_cap_or_the_same_part_of_the_memory() -> None:
    assert memory_cap_mib(0, 10_000, 30) == 3000
    assert memory_cap_mib(500, 10_000, 30) == 500
