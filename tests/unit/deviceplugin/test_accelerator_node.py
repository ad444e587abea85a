from deviceplugin.cluster.accelerator_node import accelerator_node
from deviceplugin.units.ledger import Allocation, Owner
from edgeshare.contract.devices import Device
from edgeshare.contract.health import HEALTHY, Health, Reason, Source
from edgeshare.contract.units import unit_id
from edgeshare.kube.objects.accelerator_node import name_of, status_of

ILL = Health(False, Reason.FELL_OFF_BUS, "XID 79", "after a reset", Source.DRIVER_EVENT, 1_782_000_000_000_000_000)
DEVICES = [(Device("a", 0, "Tesla T4", 16_000), HEALTHY), (Device("b", 1, "A100", 40_000, healthy=False), ILL)]
OWNER = Owner("team", "trainer", "main", "u1")


def test_it_is_named_for_its_node_and_goes_with_it() -> None:
    thing = accelerator_node("n1", "uid-of-n1", DEVICES, [])
    assert (thing["apiVersion"], thing["kind"]) == ("share.edge/v1alpha1", "AcceleratorNode")
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-of-n1"}
    assert thing["metadata"] == {"name": "n1", "ownerReferences": [owner]}
    assert thing["status"] == {
        "deviceCount": 2,
        "healthyCount": 1,
        "allocationCount": 0,
        "devices": [
            {"id": "a", "kind": "gpu", "model": "Tesla T4", "memoryMiB": 16_000, "healthy": True},
            {
                **{"id": "b", "kind": "gpu", "model": "A100", "memoryMiB": 40_000, "healthy": False},
                **{"reason": "FellOffBus", "cause": "XID 79", "source": "driver-event"},
                "since": "2026-06-21T00:00:00Z",
            },
        ],
        "allocations": [],
    }


def test_an_allocation_says_whose_it_is_as_soon_as_that_is_known() -> None:
    def told(owner: Owner | None, applicant: Owner | None) -> dict[str, object]:
        units = frozenset(unit_id("a", unit) for unit in range(30))
        made = Allocation("gpu-1", units, "", owner, applicant=applicant)
        (only,) = accelerator_node("n1", "", DEVICES, [made])["status"]["allocations"]
        return dict(only)

    nobody = {"id": "gpu-1", "devices": ["a"], "unitsEach": 30, "memoryMiB": 4800}
    assert told(None, None) == nobody
    pod = {"namespace": "team", "name": "trainer", "uid": "u1"}
    assert told(None, OWNER) == told(OWNER, None) == {**nobody, "pod": pod, "container": "main"}
    # Without an API server no uid is known.
    assert told(Owner("team", "trainer", "main"), None)["pod"] == {"namespace": "team", "name": "trainer"}


def test_caps_and_units_are_of_each_device() -> None:
    units = frozenset(unit_id(device, unit) for device in "ab" for unit in range(100))
    whole, capped = (Allocation(name, units, "", OWNER, memory_mib=mib) for name, mib in (("1", 0), ("2", 2000)))
    one, two = accelerator_node("n1", "", DEVICES, [capped, whole])["status"]["allocations"]
    assert (one["devices"], one["unitsEach"], one["memoryMiB"]) == (["a", "b"], 100, 16_000)
    assert (two["id"], two["memoryMiB"]) == ("2", 2000)


def test_who_reads_it_finds_what_was_written() -> None:
    capped = Allocation("1", frozenset(unit_id("b", unit) for unit in range(30)), "", OWNER, memory_mib=2000)
    thing = accelerator_node("n1", "", DEVICES, [capped])
    told = status_of(thing)
    assert name_of(thing) == "n1"
    ill, made = told.devices[1], told.allocations[0]
    assert (ill.id, ill.kind, ill.model, ill.memory_mib, ill.healthy) == ("b", "gpu", "A100", 40_000, False)
    assert (ill.cause, told.devices[0].cause) == ("XID 79", "")
    assert (made.id, made.devices, made.units_each, made.memory_mib) == ("1", ["b"], 30, 2000)
    assert (made.pod.namespace, made.pod.name, made.pod.uid, made.container) == ("team", "trainer", "u1", "main")
