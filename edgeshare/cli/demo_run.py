"""The demo itself: starts the workloads, looks at the machine while they run, and has them judged."""

import os
import threading
import time
from collections.abc import Callable, Sequence

from edgeshare.cli.demo_plan import WORKLOADS, Phase, Tally, Verdict, Workload, expected_percents
from edgeshare.cli.demo_view import Picture, WorkloadRow
from edgeshare.client import ManagerClient
from edgeshare.contract.errors import EdgeshareError
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from edgeshare.v1.status_pb2 import AllocationStatus, NodeStatus
from simgpu.machine import Machine
from simgpu.native import BURN
from simgpu.stage.executed import Interval
from simgpu.stage.programs import EDGESHARE, Program, begin_together
from simgpu.stage.stage import Stage

TICK_NS = 250 * NS_PER_MS
"""Between two looks at the machine."""

LAST_LOOK_NS = 100 * NS_PER_MS
"""How long after the end the last look at the machine is: what ran then has been logged."""

SHOWN_WINDOW_NS = 2 * NS_PER_S
"""What the shares that are shown are of."""

ONLOOKER_NICE = 10
"""About a tenth of what the others get of a processor that is contended."""

KERNEL_US = 1_000
ALLOCATED_MIB = 512
SPARE_S = 60
"""How much longer than the demo a workload would go on: it is ended, it does not end."""


def perform(stage: Stage, phases: Sequence[Phase], show: Callable[[Picture], None]) -> Verdict:
    """Runs the workloads through all phases, shows them meanwhile, and judges them. Raises Unavailable where
    one of the programs ends on its own."""
    workloads = [start_workload(stage, workload, phases) for workload in WORKLOADS]
    programs = [stage.manager, *workloads]
    begin_ns = begin_together(workloads)
    # All that is to be seen is started. Who only looks on must not keep it waiting for a processor.
    os.nice(ONLOOKER_NICE)
    reports = Reports(stage.client)
    reports.start()
    log = MachineLog(stage.machine)
    tally = Tally(phases, SHOWN_WINDOW_NS)
    for look_ns in range(0, phases[-1].end_ns + LAST_LOOK_NS + TICK_NS, TICK_NS):
        time.sleep(max(0, begin_ns + look_ns - time.monotonic_ns()) / NS_PER_S)
        for program in programs:
            program.check()
        now_ns = time.monotonic_ns() - begin_ns
        tally.add(log.read(begin_ns))
        if now_ns < phases[-1].end_ns:
            show(make_picture(phases, now_ns, tally, reports.latest))
    return tally.judge(WORKLOADS)


def start_workload(stage: Stage, workload: Workload, phases: Sequence[Phase]) -> Program:
    """Starts one through ``edgeshare run``; it waits to be told when to begin to submit."""
    seconds = phases[-1].end_ns // NS_PER_S + SPARE_S
    share = ["--runtime-dir", str(stage.runtime_dir), "--gpu", str(workload.gpu)]
    share += ["--percent", str(workload.request_percent), "--limit", str(workload.limit_percent)]
    burn = [str(BURN), "--kernel-us", str(KERNEL_US), "--alloc-mib", str(ALLOCATED_MIB)]
    burn += ["--start-when-told", "--seconds", str(seconds)]
    if workload.pauses:
        paused = [phase for phase in phases if phase.paused]
        burn += ["--idle-from", str(paused[0].begin_ns / NS_PER_S)]
        burn += ["--idle-until", str(paused[-1].end_ns / NS_PER_S)]
    return stage.start(workload.name, [*EDGESHARE, "run", *share, "--", *burn])


class MachineLog:
    """What the simulated GPUs have executed for the workloads, each on its own GPU."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._gpus = {workload.name: workload.gpu for workload in WORKLOADS}
        self._cursors = dict.fromkeys(sorted(self._gpus.values()), 0)

    def read(self, begin_ns: int) -> list[Interval]:
        """What was executed since the last call; times are since ``begin_ns``."""
        read = []
        for gpu, cursor in self._cursors.items():
            logged, self._cursors[gpu] = self._machine.log(gpu, cursor)
            # After the log: who is in it is then known.
            tags = self._machine.tags() if logged else {}
            read += [
                Interval(tags[entry.process], entry.begin_ns - begin_ns, entry.end_ns - begin_ns)
                for entry in logged
                if self._gpus.get(tags[entry.process]) == gpu
            ]
        return read


class Reports(threading.Thread):
    """Keeps what the manager said last about shares, queues and waits."""

    def __init__(self, client: ManagerClient) -> None:
        super().__init__(name="reports", daemon=True)
        self.latest = NodeStatus()
        self._client = client

    def run(self) -> None:
        try:
            for status in self._client.watch(TICK_NS):
                self.latest = status
        except EdgeshareError:
            # It ended, or we do: who runs the programs notices, and tells.
            return


def make_picture(phases: Sequence[Phase], now_ns: int, tally: Tally, status: NodeStatus) -> Picture:
    """This moment, before the end of the last phase."""
    phase = next(phase for phase in phases if now_ns < phase.end_ns)
    executed = tally.recent_percents(now_ns)
    expected = expected_percents(WORKLOADS, phase)
    return Picture(
        elapsed_ns=now_ns,
        total_ns=phases[-1].end_ns,
        phase=phase,
        workloads=[
            make_standing(w, expected[w.name], executed.get(w.name, 0.0), find_report(w, status)) for w in WORKLOADS
        ],
    )


def find_report(workload: Workload, status: NodeStatus) -> AllocationStatus:
    """What the manager says about a workload: nobody else has an allocation of that size on that GPU. Empty
    where it says nothing yet."""
    indices = {device.id: device.index for device in status.devices}
    for report in status.allocations:
        gpus = [indices.get(device_id) for device_id in report.allocation.device_ids]
        if gpus == [workload.gpu] and report.allocation.request_percent == workload.request_percent:
            return report
    return AllocationStatus()


def make_standing(
    workload: Workload, rule_percent: float, executed_percent: float, report: AllocationStatus
) -> WorkloadRow:
    """One workload's line: the share from the machine, the rest from the manager."""
    return WorkloadRow(
        workload=workload,
        rule_percent=rule_percent,
        executed_percent=executed_percent,
        queued_ns=report.queued_ns,
        waiting_ns=report.waiting_ns,
        memory_used_bytes=report.memory_used_bytes,
        memory_mib=report.allocation.memory_mib,
    )
