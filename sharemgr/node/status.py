"""The node's status, put together for those who ask."""

from collections.abc import Iterable

from edgeshare.contract.devices import Device
from edgeshare.contract.guarantee import Guarantee
from edgeshare.contract.units import MIB
from edgeshare.v1.status_pb2 import (
    ALLOCATION_STATE_DRAINING,
    ALLOCATION_STATE_HOLDING,
    ALLOCATION_STATE_IDLE,
    ALLOCATION_STATE_WAITING,
    AllocationStatus,
    ClientStatus,
    DeviceStatus,
    ManagerStatus,
    UnmanagedProcess,
)
from sharemgr.node.clients.server import AllocationServer
from sharemgr.node.clients.timer import DeadlineTimer
from sharemgr.node.guarantee import judge
from sharemgr.node.machine.allocations import Allocation, Book
from sharemgr.node.machine.containers import Container
from sharemgr.node.machine.messages import message_from
from sharemgr.node.machine.observer import Observation
from sharemgr.node.totals import Totals
from sharemgr.node.turns.account import Account, State
from sharemgr.node.unmanaged import UnmanagedProcesses

STATES = {
    State.IDLE: ALLOCATION_STATE_IDLE,
    State.WAITING: ALLOCATION_STATE_WAITING,
    State.HOLDING: ALLOCATION_STATE_HOLDING,
    State.DRAINING: ALLOCATION_STATE_DRAINING,
}

QUEUED_NS_MAX = (1 << 63) - 1
"""What is told of the queue at most: a client writes into its hint page what it likes."""


def device_status(
    device: Device, book: Book, observation: Observation | None, unmanaged: UnmanagedProcesses
) -> DeviceStatus:
    """One device, with the unmanaged processes on it."""
    used_mib = observation.memory_used_mib.get(device.id, 0) if observation else 0
    processes = observation.processes.get(device.id) if observation else {}
    listed = processes or {}
    energy_mj = observation.energy_mj.get(device.id) if observation else None
    return DeviceStatus(
        id=device.id,
        index=device.index,
        model=device.model,
        memory_mib=device.memory_mib,
        memory_used_mib=used_mib,
        allocated_percent=book.allocated_percent(device.id),
        allocated_memory_mib=book.allocated_memory_mib(device.id),
        healthy=device.healthy,
        cause=device.cause,
        accelerator=device.accelerator.value,
        unmanaged_processes=[
            _process_status(pid, listed.get(pid) or 0, unmanaged.container(device.id, pid))
            for pid in sorted(unmanaged.of(device.id))
        ],
        processes_unknown=processes is None,
        process_memory_unknown=device.memory_mib > 0 and (processes is None or None in processes.values()),
        temperature_c=observation.temperature_c.get(device.id) if observation else None,
        energy_joules=None if energy_mj is None else energy_mj / 1000,
    )


def measured_ns(server: AllocationServer, window_ns: int, now_ns: int) -> int:
    """What an allocation's shares are of: the window, or its life where that is shorter."""
    return max(1, min(window_ns, now_ns - server.opened_at_ns))


def guarantee(allocation: Allocation, account: Account, of_ns: int, exclusive: bool) -> Guarantee:
    """Whether the allocation had what it was due; of an exclusive device, nobody says what of it ran."""
    got_ns = account.held_ns if exclusive else account.gpu_ns
    return judge(allocation.request_percent, got_ns, account.waited_ns, of_ns, account.usual_part)


def allocation_status(
    allocation: Allocation, server: AllocationServer, window_ns: int, now_ns: int, missed_ns: int, totals: Totals
) -> AllocationStatus:
    """One allocation, whose guarantee was missed for so long; what it has had is taken in."""
    account = server.terms.device.account(allocation.id, now_ns)
    total = totals.take_in(allocation.id, account, server.terms.device.exclusive)
    of_ns = measured_ns(server, window_ns, now_ns)
    held_percent = 100 * account.held_ns / of_ns
    memory = server.terms.memory
    indices = range(len(allocation.device_ids))
    used_bytes = [memory.info(index).used_bytes for index in indices]
    pages = [client.pages for client in server.clients.values() if client.pages is not None]
    clients = [
        ClientStatus(pid=client.peer.pid, memory_used_bytes=memory.client_bytes(client_id))
        for client_id, client in server.clients.items()
        if client.joined
    ]
    clients += [
        ClientStatus(pid=server.dying_pid(client_id), memory_used_bytes=dying_bytes, dying=True)
        for client_id, dying_bytes in memory.dying().items()
    ]
    device = server.terms.device
    guaranteed = guarantee(allocation, account, of_ns, device.exclusive)
    return AllocationStatus(
        allocation=message_from(allocation),
        # Called back or not, it has the device until it closes it.
        state=STATES[State.HOLDING if device.exclusive and account.holding_ns else account.state],
        clients=clients,
        held_percent=held_percent,
        gpu_percent=guaranteed.got_percent,
        lent_percent=max(0.0, held_percent - allocation.request_percent),
        queued_ns=min(sum(page.hinted_backlog_ns() for page in pages), QUEUED_NS_MAX),
        waiting_ns=account.waiting_ns,
        longest_wait_ns=account.longest_wait_ns,
        memory_used_bytes=sum(used_bytes),
        grants=account.grants,
        revokes=server.revokes,
        overruns=account.overruns,
        offences={kind.value: count for kind, count in server.terms.offences.counts.items()},
        overlapping=account.overlapping,
        throttled=account.throttled,
        memory_overhead_bytes=[memory.overhead_bytes(index) for index in indices],
        memory_bytes=used_bytes,
        refused_context_bytes=memory.refused_context_bytes,
        holding_ns=account.holding_ns,
        waiting_allocations=device.waiting() if account.holding_ns else (),
        wanted_percent=guaranteed.wanted_percent,
        due_percent=guaranteed.due_percent,
        guarantee_met_ratio=guaranteed.met_ratio,
        guarantee_missed_ns=missed_ns,
        beside=account.beside,
        held_total_ns=total.held_ns,
        gpu_total_ns=total.gpu_ns,
        waited_total_ns=total.waited_ns,
        memory_peak_bytes=[memory.peak_bytes(index) for index in indices],
        energy_joules={device_id: mj / 1000 for device_id, mj in total.energy_mj.items()},
    )


def manager_status(records: int, timers: Iterable[DeadlineTimer]) -> ManagerStatus:
    """The manager's own work."""
    timers = list(timers)
    return ManagerStatus(
        records=records,
        deadlines=sum(timer.met for timer in timers),
        late_ns=sum(timer.late_ns for timer in timers),
        latest_ns=max((timer.latest_ns for timer in timers), default=0),
    )


def _process_status(pid: int, memory_bytes: int, container: Container | None) -> UnmanagedProcess:
    return UnmanagedProcess(
        pid=pid,
        memory_mib=memory_bytes // MIB,
        pod_uid=container.pod_uid if container is not None else "",
        container_id=container.container_id if container is not None else "",
    )
