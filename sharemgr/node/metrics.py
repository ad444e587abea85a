"""The node's status as Prometheus metrics. Nothing is counted for them: they are made of a status, when one is asked
for."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial

from prometheus_client.core import Metric, SummaryMetricFamily

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.units import MIB, NS_PER_S
from edgeshare.http import prometheus
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import AllocationStatus, DeviceStatus, ManagerStatus, NodeStatus

DEVICE = ("device", "index", "model")
ALLOCATION = ("device", "allocation", "namespace", "pod", "container")

EXCLUSIVE = {kind.accelerator.value for kind in KINDS.values() if kind.is_exclusive}
"""The kinds of device of which a program can keep one."""

_gauge = partial(prometheus.gauge, "edgeshare")
_counter = partial(prometheus.counter, "edgeshare")


def exposition(status: NodeStatus) -> bytes:
    """The page that Prometheus reads (text format 1.0.0)."""
    return prometheus.exposition(families(status))


def families(status: NodeStatus) -> Iterator[Metric]:
    """All metrics of a status. Times are seconds, memory is bytes, and shares are ratios of a device."""
    yield _gauge("build_info", "The running manager.", ("version",), [((status.version,), 1)])
    yield _gauge("window_seconds", "What shares are measured over.", (), [((), status.window_ns / NS_PER_S)])
    yield from _manager(status.manager)
    yield from _devices(status.devices)
    # Those that fit this machine no more have no device to be told of.
    known = {device.id for device in status.devices}
    silent = {device.id for device in status.devices if device.process_memory_unknown}
    kept = {device.id for device in status.devices if device.accelerator in EXCLUSIVE}
    shares = [each for each in status.allocations if known.issuperset(each.allocation.device_ids)]
    yield from _allocations(shares, silent)
    yield _gauge(
        "allocation_holding_seconds",
        "How long it has had a device now of which nobody can call it back; 0: it has not.",
        ALLOCATION,
        [
            (_labels(each.allocation, device), each.holding_ns / NS_PER_S)
            for each in shares
            for device in each.allocation.device_ids
            if device in kept
        ],
    )


def _manager(manager: ManagerStatus) -> Iterator[Metric]:
    yield _counter("records", "Records received from clients.", (), [((), manager.records)])
    yield SummaryMetricFamily(
        "edgeshare_deadline_lag_seconds",
        "How late the manager met its deadlines: the ends of slices, of drains and the like.",
        count_value=manager.deadlines,
        sum_value=manager.late_ns / NS_PER_S,
    )
    worst = manager.latest_ns / NS_PER_S
    yield _gauge("deadline_lag_longest_seconds", "How late it met one at most, since it started.", (), [((), worst)])


def _devices(devices: Sequence[DeviceStatus]) -> Iterator[Metric]:
    def gauge(name: str, text: str, values: Iterable[float | None]) -> Metric:
        """None: nobody knows it, and it is left out."""
        rows = [(_device(each), value) for each, value in zip(devices, values, strict=True) if value is not None]
        return _gauge(f"device_{name}", text, DEVICE, rows)

    yield gauge("healthy", "1: healthy, 0: not.", [device.healthy for device in devices])
    yield gauge("memory_bytes", "Memory, without the driver's reserve.", [MIB * each.memory_mib for each in devices])
    yield gauge(
        "memory_used_bytes", "Memory in use, as the driver says.", [MIB * each.memory_used_mib for each in devices]
    )
    yield gauge("allocated_ratio", "Time that is given out.", [each.allocated_percent / 100 for each in devices])
    yield gauge(
        "allocated_memory_bytes", "Memory that is given out.", [MIB * each.allocated_memory_mib for each in devices]
    )
    yield gauge(
        "unmanaged_processes",
        "Processes on a shared device whose use no hook tells of: they take time that nobody counts.",
        [None if each.processes_unknown else len(each.unmanaged_processes) for each in devices],
    )
    yield gauge(
        "processes_known",
        "1: the driver lists who uses it; 0: nobody can be told as unmanaged.",
        [not each.processes_unknown for each in devices],
    )
    yield gauge(
        "process_memory_known",
        "1: the driver says how much memory each process has; 0: what it takes by itself is not counted.",
        [not each.process_memory_unknown for each in devices],
    )
    yield gauge(
        "temperature_celsius",
        "How hot it is, where somebody says it.",
        [each.temperature_c if each.HasField("temperature_c") else None for each in devices],
    )
    yield _counter(
        "device_energy_joules",
        "What it consumed since its driver was loaded, where that says it.",
        DEVICE,
        [(_device(each), each.energy_joules) for each in devices if each.HasField("energy_joules")],
    )


Figure = tuple[Callable[..., Metric], str, str, Callable[[AllocationStatus], float]]
"""How a metric is made, its name after ``allocation_``, what it is, and its value for one allocation."""

SHARE_FIGURES: tuple[Figure, ...] = (
    (
        _gauge,
        "request_ratio",
        "Guaranteed share of the device's time.",
        lambda each: each.allocation.request_percent / 100,
    ),
    (_gauge, "limit_ratio", "Ceiling of the share.", lambda each: each.allocation.limit_percent / 100),
    (_gauge, "held_ratio", "Share held in the window, grant to drain.", lambda each: each.held_percent / 100),
    (_gauge, "gpu_ratio", "GPU time used in the window.", lambda each: each.gpu_percent / 100),
    (_gauge, "lent_ratio", "Share held above the request.", lambda each: each.lent_percent / 100),
    (
        _gauge,
        "wanted_ratio",
        "GPU time of the window's time in which it did not wait: what it would use alone.",
        lambda each: each.wanted_percent / 100,
    ),
    (_gauge, "due_ratio", "What it wanted, up to its request.", lambda each: each.due_percent / 100),
    (
        _gauge,
        "guarantee_met_ratio",
        "What it got of what it was due, at most 1.",
        lambda each: each.guarantee_met_ratio,
    ),
    (
        _counter,
        "guarantee_missed_seconds",
        "For how long it had less than it was due, by more than the rule may be off.",
        lambda each: each.guarantee_missed_ns / NS_PER_S,
    ),
    (
        _counter,
        "held_seconds",
        "For how long it had its device, grant to drain; while others are let in, too, what it was charged with.",
        lambda each: each.held_total_ns / NS_PER_S,
    ),
    (_counter, "gpu_seconds", "GPU time used.", lambda each: each.gpu_total_ns / NS_PER_S),
    (
        _counter,
        "waited_seconds",
        "For how long it had work and was kept out, by others or by its own limit.",
        lambda each: each.waited_total_ns / NS_PER_S,
    ),
    (_gauge, "waiting_seconds", "How long it has waited now.", lambda each: each.waiting_ns / NS_PER_S),
    (_gauge, "longest_wait_seconds", "Longest wait in the window.", lambda each: each.longest_wait_ns / NS_PER_S),
    (_gauge, "queued_seconds", "GPU time its clients say is queued.", lambda each: each.queued_ns / NS_PER_S),
    (_gauge, "overlapping", "1: it did not drain in time and runs beside others.", lambda each: each.overlapping),
    (_gauge, "beside", "1: others may be let in while it has its slice; 0: exclusive turns.", lambda each: each.beside),
    (_gauge, "throttled", "1: it waits because it is at its limit.", lambda each: each.throttled),
    (_gauge, "clients", "Processes joined.", lambda each: sum(not one.dying for one in each.clients)),
    (_counter, "grants", "Slices granted.", lambda each: each.grants),
    (_counter, "revokes", "Slices called back.", lambda each: each.revokes),
    (_counter, "overruns", "Slices not given back in time.", lambda each: each.overruns),
    (_gauge, "memory_cap_bytes", "Cap on memory of the device.", lambda each: MIB * each.allocation.memory_mib),
)
"""What is told of an allocation on each of its devices alike."""


def _allocations(shares: Sequence[AllocationStatus], silent: Container[str]) -> Iterator[Metric]:
    """``silent``: of these devices nobody knows what the driver takes by itself."""
    for make, name, text, value in SHARE_FIGURES:
        rows = [
            (_labels(each.allocation, device), value(each)) for each in shares for device in each.allocation.device_ids
        ]
        yield make(f"allocation_{name}", text, ALLOCATION, rows)
    used = _memory(shares, [each.memory_bytes for each in shares], ())
    yield _gauge("allocation_memory_used_bytes", "Memory counted against the cap.", ALLOCATION, used)
    peak = _memory(shares, [each.memory_peak_bytes for each in shares], ())
    yield _gauge("allocation_memory_peak_bytes", "The most of that at once, since it began.", ALLOCATION, peak)
    overhead = _memory(shares, [each.memory_overhead_bytes for each in shares], silent)
    text = "Part of it that the driver took by itself, as for contexts."
    yield _gauge("allocation_memory_overhead_bytes", text, ALLOCATION, overhead)
    yield _counter(
        "allocation_energy_joules",
        "Its part of what its device consumed, by GPU time.",
        ALLOCATION,
        [
            (_labels(share.allocation, device), share.energy_joules[device])
            for share in shares
            for device in sorted(share.energy_joules)
        ],
    )
    # These are of an allocation, not of one of its devices: so that a sum over them counts each once.
    yield _gauge(
        "allocation_refused_context_bytes",
        "What a context takes that did not fit under the cap; 0: the last one did.",
        ALLOCATION[1:],
        ((_labels(share.allocation, "")[1:], share.refused_context_bytes) for share in shares),
    )
    yield _counter(
        "offences",
        "What clients did that no well-behaved client does, by kind.",
        (*ALLOCATION[1:], "kind"),
        [
            ((*_labels(share.allocation, "")[1:], kind), share.offences[kind])
            for share in shares
            for kind in sorted(share.offences)
        ],
    )


def _memory(
    shares: Sequence[AllocationStatus], values: Iterable[Sequence[int]], without: Container[str]
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Of each allocation a value for each of its devices, but for those ``without``."""
    for share, of_devices in zip(shares, values, strict=True):
        for device_id, value in zip(share.allocation.device_ids, of_devices, strict=False):
            if device_id not in without:
                yield _labels(share.allocation, device_id), value


def _device(device: DeviceStatus) -> tuple[str, ...]:
    return device.id, str(device.index), device.model


def _labels(allocation: Allocation, device_id: str) -> tuple[str, ...]:
    owner = allocation.owner
    return device_id, allocation.id, owner.namespace, owner.pod, owner.container
