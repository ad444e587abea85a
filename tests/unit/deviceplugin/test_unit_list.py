from deviceplugin.kubelet.unit_list import list_units
from edgeshare.contract.devices import Device
from edgeshare.contract.units import parse_unit_id

LONGEST_UUID = "GPU-" + "f" * 8 + "-ffff-ffff-ffff-" + "f" * 12


def test_a_device_is_a_hundred_units_with_ids_that_the_kubelet_takes() -> None:
    units = list_units([Device(LONGEST_UUID, 0, "Simulated", 8192)]).devices
    assert len({unit.ID for unit in units}) == 100
    assert max(len(unit.ID) for unit in units) <= 63
    assert {parse_unit_id(unit.ID) for unit in units} == {(LONGEST_UUID, n) for n in range(100)}


def test_all_units_of_a_device_share_its_health() -> None:
    well, ill = Device("GPU-a", 0, "m", 1), Device("GPU-b", 1, "m", 1, healthy=False, cause="XID 79")
    health = {(unit.ID[:5], unit.health) for unit in list_units([well, ill]).devices}
    assert health == {("GPU-a", "Healthy"), ("GPU-b", "Unhealthy")}


def test_a_numa_node_is_told_only_where_the_machine_says_one() -> None:
    known, unknown = Device("GPU-a", 0, "m", 1, numa_node=1), Device("GPU-b", 1, "m", 1)
    nodes = {unit.ID[:5]: [node.ID for node in unit.topology.nodes] for unit in list_units([known, unknown]).devices}
    assert nodes == {"GPU-a": [1], "GPU-b": []}
    assert not list_units([unknown]).devices[0].HasField("topology")


def test_sixteen_devices_fit_into_the_kubelets_message() -> None:
    devices = [Device(f"{LONGEST_UUID[:-2]}{n:02}", n, "m", 1, numa_node=1) for n in range(16)]
    assert list_units(devices).ByteSize() < 4 << 20
