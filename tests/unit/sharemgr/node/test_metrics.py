"""What a status says as metrics: in the format that Prometheus reads, every figure in base units."""

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from edgeshare.contract.units import NS_PER_S
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from edgeshare.v1.status_pb2 import (
    AllocationStatus,
    ClientStatus,
    DeviceStatus,
    ManagerStatus,
    NodeStatus,
    UnmanagedProcess,
)
from sharemgr.node.metrics import exposition

OWNER = Owner(namespace="team", pod="train-0", container='main "quoted"\\\n')
STATUS = NodeStatus(
    version="1.2.3",
    window_ns=10 * NS_PER_S,
    devices=[
        DeviceStatus(id="GPU-a", index=0, model="t4", memory_mib=100, memory_used_mib=30, healthy=True),
        DeviceStatus(id="tpu-a", index=0, model="Coral", accelerator="edgetpu", temperature_c=0, energy_joules=0),
        DeviceStatus(id="GPU-b", index=1, model="t4", unmanaged_processes=[UnmanagedProcess(pid=7)] * 2),
    ],
    allocations=[
        AllocationStatus(
            allocation=Allocation(
                id="one", device_ids=["GPU-a"], request_percent=25, limit_percent=50, memory_mib=10, owner=OWNER
            ),
            clients=[ClientStatus(pid=1), ClientStatus(pid=2, dying=True)],
            held_percent=24.5,
            grants=3,
            revokes=2,
            overruns=1,
            overlapping=True,
            beside=True,
            longest_wait_ns=NS_PER_S // 2,
            wanted_percent=50,
            due_percent=25,
            guarantee_met_ratio=0.98,
            guarantee_missed_ns=3 * NS_PER_S,
            held_total_ns=7 * NS_PER_S,
            gpu_total_ns=6 * NS_PER_S,
            waited_total_ns=5 * NS_PER_S,
            holding_ns=NS_PER_S,
            memory_peak_bytes=[2 << 20],
            energy_joules={"GPU-a": 1.5},
            offences={"malformed": 4, "flood": 0},
            memory_bytes=[1 << 20],
            memory_overhead_bytes=[1 << 10],
            refused_context_bytes=300 << 20,
        ),
        AllocationStatus(
            allocation=Allocation(id="two", device_ids=["GPU-a", "GPU-b"], request_percent=100, limit_percent=100),
            memory_bytes=[1, 2],
            memory_overhead_bytes=[0, 0],
        ),
        AllocationStatus(allocation=Allocation(id="three", device_ids=["tpu-a"]), holding_ns=2 * NS_PER_S),
        AllocationStatus(allocation=Allocation(id="stranded", device_ids=["GPU-gone"])),
    ],
    manager=ManagerStatus(records=9, deadlines=4, late_ns=2 * NS_PER_S, latest_ns=NS_PER_S),
)


def samples() -> Iterator[Sample]:
    for family in text_string_to_metric_families(exposition(STATUS).decode()):
        assert family.documentation
        assert family.type in ("gauge", "counter", "summary")
        yield from family.samples


def value(name: str, **labels: str) -> float:
    (found,) = (each for each in samples() if each.name == name and labels.items() <= each.labels.items())
    return found.value


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("edgeshare_build_info", {"version": "1.2.3"}, 1),
        ("edgeshare_window_seconds", {}, 10),
        ("edgeshare_device_healthy", {"device": "GPU-a", "index": "0", "model": "t4"}, 1),
        ("edgeshare_device_healthy", {"device": "GPU-b"}, 0),
        ("edgeshare_device_memory_used_bytes", {"device": "GPU-a"}, 30 << 20),
        ("edgeshare_device_unmanaged_processes", {"device": "GPU-b"}, 2),
        ("edgeshare_allocation_request_ratio", {"allocation": "one", "pod": "train-0"}, 0.25),
        ("edgeshare_allocation_limit_ratio", {"allocation": "one", "namespace": "team"}, 0.5),
        ("edgeshare_allocation_held_ratio", {"allocation": "one", "container": OWNER.container}, 0.245),
        ("edgeshare_allocation_longest_wait_seconds", {"allocation": "one"}, 0.5),
        ("edgeshare_allocation_wanted_ratio", {"allocation": "one"}, 0.5),
        ("edgeshare_allocation_due_ratio", {"allocation": "one"}, 0.25),
        ("edgeshare_allocation_guarantee_met_ratio", {"allocation": "one"}, 0.98),
        ("edgeshare_allocation_guarantee_missed_seconds_total", {"allocation": "one"}, 3),
        ("edgeshare_allocation_held_seconds_total", {"allocation": "one"}, 7),
        ("edgeshare_allocation_gpu_seconds_total", {"allocation": "one"}, 6),
        ("edgeshare_allocation_waited_seconds_total", {"allocation": "one"}, 5),
        ("edgeshare_allocation_memory_peak_bytes", {"allocation": "one"}, 2 << 20),
        ("edgeshare_allocation_energy_joules_total", {"device": "GPU-a", "pod": "train-0"}, 1.5),
        # One that can be called back, and what nobody says, is left out: there is one of each.
        ("edgeshare_allocation_energy_joules_total", {}, 1.5),
        ("edgeshare_allocation_holding_seconds", {}, 2),
        ("edgeshare_device_temperature_celsius", {}, 0),
        ("edgeshare_device_energy_joules_total", {}, 0),
        ("edgeshare_allocation_grants_total", {"allocation": "one"}, 3),
        ("edgeshare_allocation_revokes_total", {"allocation": "one"}, 2),
        ("edgeshare_allocation_overruns_total", {"allocation": "one"}, 1),
        ("edgeshare_allocation_overlapping", {"allocation": "one"}, 1),
        ("edgeshare_allocation_beside", {"allocation": "one"}, 1),
        ("edgeshare_allocation_clients", {"allocation": "one"}, 1),
        ("edgeshare_allocation_memory_cap_bytes", {"allocation": "one"}, 10 << 20),
        ("edgeshare_allocation_memory_used_bytes", {"allocation": "one"}, 1 << 20),
        ("edgeshare_allocation_memory_overhead_bytes", {"allocation": "one"}, 1 << 10),
        ("edgeshare_allocation_memory_used_bytes", {"allocation": "two", "device": "GPU-b"}, 2),
        ("edgeshare_allocation_refused_context_bytes", {"allocation": "one"}, 300 << 20),
        ("edgeshare_allocation_refused_context_bytes", {"allocation": "two"}, 0),
        ("edgeshare_offences_total", {"allocation": "one", "kind": "malformed"}, 4),
        ("edgeshare_offences_total", {"allocation": "one", "kind": "flood"}, 0),
        ("edgeshare_records_total", {}, 9),
        ("edgeshare_deadline_lag_seconds_count", {}, 4),
        ("edgeshare_deadline_lag_seconds_sum", {}, 2),
        ("edgeshare_deadline_lag_longest_seconds", {}, 1),
    ],
)
def test_a_figure_is_told_in_base_units(name: str, labels: dict[str, str], expected: float) -> None:
    assert value(name, **labels) == expected


def test_no_series_is_told_twice_and_all_of_ours_are_named_so() -> None:
    seen = [(each.name, tuple(sorted(each.labels.items()))) for each in samples()]
    assert len(seen) == len(set(seen))
    assert {name.split("_")[0] for name, _ in seen} == {"edgeshare", "process"}
    assert not [name for name, labels in seen if ("allocation", "stranded") in labels]
