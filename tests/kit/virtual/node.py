"""A node on the virtual clock: a machine, the real manager, and clients with the real hook and driver."""

import asyncio
import random
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeshare.contract.devices import Device
from edgeshare.contract.names import HOOK_SOCKET
from edgeshare.contract.units import NS_PER_MS
from edgeshare.v1.allocations_pb2 import Allocation
from sharemgr.node.config import Config
from sharemgr.node.events import Events
from sharemgr.node.machine.contexts import UNSEEN_BYTES, ContextSizes
from sharemgr.node.machine.messages import LATENCY
from sharemgr.node.machine.observer import GLANCE_S, INTERVAL_S, Observation
from sharemgr.node.machine.store import Store
from sharemgr.node.node import Node
from sharemgr.node.sockets.loop import Loop
from simgpu.create import create
from simgpu.machine import Machine
from simgpu.readings import Interval
from tests.kit.virtual.cases.case import Case
from tests.kit.virtual.cases.paces import PACES, PYTHON_SCALE
from tests.kit.virtual.faults import Faults, pass_nothing
from tests.kit.virtual.forger import forge
from tests.kit.virtual.native import Attacking, Programs, Running, Vt
from tests.kit.virtual.opener import Opener

UUID = "GPU-00000000-0000-4000-8000-000000000001"
MEMORY_MIB = 65_536
ATTACKER_MIB = 100
CONFIG = Config()
DEVICE = Device(UUID, 0, "Tesla T4", MEMORY_MIB)


def _counted(offences: Mapping[str, int]) -> dict[str, int]:
    """Those that there were."""
    return {kind: count for kind, count in offences.items() if count}


class VirtualNode:
    """One case, simulated from its begin to its end in this process, once."""

    def __init__(self, case: Case, vt: Vt, root: Path, libraries: Path, hook: Path, driver: Path) -> None:
        self._case = case
        self._vt = vt
        self._root = root
        # The manager's epoch is drawn with it.
        secrets.randbelow = random.Random(case.seed).randrange  # type: ignore[assignment]
        # The machine is not looked at through what a killed manager leaves.
        vt.enter(vt.process("judge", 1), "judge")
        pace = PACES[case.pace].machine
        create(
            root / "machine",
            gpus=1,
            memory_mib=MEMORY_MIB,
            uuids=[UUID],
            scheduling=case.scheduling,
            overlap=case.overlap,
            **({"pace": pace} if pace else {}),  # type: ignore[arg-type]
        )
        self.machine = Machine(root / "machine")
        self._dead: list[tuple[Loop, Node | Opener]] = []
        self._faults = Faults(case.faults, self._vt)
        if case.unpassed_ms:
            pass_nothing(time.monotonic() + case.unpassed_ms / 1000)
        self._clients_dir = root / "run" / "clients"
        self._clients_dir.mkdir(parents=True)
        self._store = Store(root)
        self._store.save(self._allocations() if case.hooked else ())
        self._manager = self._enter_manager()
        self._loop, self._node = self._start_manager()
        programs = Programs(libraries)
        self._clients = dict(zip(case.names, case.clients, strict=True))
        self._running: dict[str, Running] = {}
        for name, owner in case.processes.items():
            self._running[name] = programs.start(
                name,
                self._clients[owner],
                root / name,
                hook if case.hooked else None,
                driver,
                PACES[case.pace].launch_ns,
                lambda process, name=name, owner=owner: self._prepare(process, name, owner),  # type: ignore[misc]
            )
        self._of = {
            client: tuple(self._running[name] for name, owner in case.processes.items() if owner == client)
            for client in self._clients
        }
        self._attackers: dict[str, Attacking] = {
            name: programs.attack(name, attacker, self._clients_dir / name / HOOK_SOCKET)
            for name, attacker in zip(case.attacker_names, case.attackers, strict=True)
        }
        self._faults.arrange_points(self._manager, "manager")
        self._faults.arrange_times(self._processes(), self._loop)
        self._begin_s = time.monotonic() + case.settle_ms / 1000
        self._cursor = 0
        self._intervals: list[Interval] = []
        self._steps: list[dict[str, Any]] = []

    def run(self) -> dict[str, Any]:
        """Simulates the case to its end; returns what happened, for ``report.Report``."""
        while not self._over:
            try:
                self._loop.run_until_complete(self._measure())
            except OSError:
                # What a killed manager's loop meets next: its descriptors are gone.
                self._restart_manager()
        return {
            "steps": self._steps,
            "intervals": self._told_intervals(),
            "works": [(each.stream, each.kind, each.entry) for each in self._intervals],
            "clients": {name: self._outcome(name) for name in self._clients},
            "attackers": {name: attacking.outcome() for name, attacking in self._attackers.items()},
            "points_of": {name: self._vt.points_of(process) for name, process in self._processes().items()},
            "figures": self._vt.figures(),
        }

    def _allocations(self) -> list[Allocation]:
        return [
            Allocation(
                id=name,
                device_ids=[UUID],
                request_percent=client.percent,
                limit_percent=client.limit,
                memory_mib=client.memory_mib,
                **({"share_class": LATENCY} if client.latency else {}),  # type: ignore[arg-type]
            )
            for name, client in zip(self._case.names, self._case.clients, strict=True)
        ] + [
            Allocation(
                id=name,
                device_ids=[UUID],
                request_percent=attacker.percent,
                limit_percent=100,
                memory_mib=ATTACKER_MIB,
            )
            for name, attacker in zip(self._case.attacker_names, self._case.attackers, strict=True)
        ]

    def _enter_manager(self) -> int:
        process = self._vt.process("manager", PYTHON_SCALE)
        self._vt.enter(process, "loop")
        return process

    def _start_manager(self) -> tuple[Loop, Node | Opener]:
        loop = Loop()
        asyncio.set_event_loop(loop)
        case = self._case
        node: Node | Opener
        if case.openings:
            node = Opener(case.openings, case.names, self._clients_dir, loop)
        else:
            contexts = ContextSizes(unseen_bytes=UNSEEN_BYTES) if case.unseen else None
            config = CONFIG.model_copy(update={"max_clients": self._case.max_clients})
            node = Node(config, (DEVICE,), self._clients_dir, self._store, Events("", None), loop, contexts)
            if case.unseen:
                loop.call_later(GLANCE_S, self._glance, loop, node)
        node.restore()
        self._opened_ns = self._seen_ns = time.monotonic_ns()
        self._seen_executed_ns = {each.id: each.executed_ns[0] for each in self.machine.processes()}
        if self._case.seen:
            loop.call_later(INTERVAL_S, self._observe_each_second)
        lies = {name: each.lie for name, each in zip(case.names, case.clients, strict=True) if each.lie}
        if lies and isinstance(node, Node):
            forge(lies, node._serving.servers)
        return loop, node

    def _prepare(self, process: int, name: str, owner: str) -> None:
        for variable, value in {
            "SIMGPU_MACHINE": str(self._root / "machine"),
            "SIMGPU_TAG": owner,
            "EDGESHARE_HOOK_DIR": str(self._clients_dir / owner),
        }.items():
            self._vt.env(process, variable, value)
        self._faults.arrange_points(process, name)

    @property
    def _over(self) -> bool:
        return len(self._steps) * self._case.step_ms > self._case.measure_ms

    async def _measure(self) -> None:
        """What was executed and reported until each edge of the measured time that is still to come."""
        loop = asyncio.get_running_loop()
        while not self._over:
            edge_s = self._begin_s + len(self._steps) * self._case.step_ms / 1000
            await asyncio.sleep(edge_s - loop.time())
            self._steps.append(await self._look())

    def _restart_manager(self) -> None:
        """After a while another manager comes, as the kubelet would start it, and finds what the first left on disk."""
        (fault,) = (each for each in self._case.faults if each.process == "manager" and each.action == "kill")
        # Its objects stay: what their end would close are other descriptors by now.
        self._dead.append((self._loop, self._node))
        self._vt.enter(self._vt.process("kubelet", 1), "restart")
        self._vt.sleep(round(fault.for_ms * NS_PER_MS))
        self._manager = self._enter_manager()
        self._loop, self._node = self._start_manager()
        self._faults.go_on(self._loop)

    def _processes(self) -> dict[str, int]:
        return {name: running.process for name, running in self._running.items()} | {"manager": self._manager}

    def _outcome(self, client: str) -> dict[str, int]:
        """Of all processes of a client: sums, and the first error of any."""
        outcomes = [running.outcome() for running in self._of[client]]
        failed = next((each for each in outcomes if each["error"]), outcomes[0])
        errors = {what: failed[what] for what in ("error", "error_step")}
        return {what: sum(each[what] for each in outcomes) for what in outcomes[0]} | errors

    def _told_intervals(self) -> list[tuple[str, int, int]]:
        tags = self.machine.tags()
        return [(tags[each.process], each.begin_ns, each.end_ns) for each in self._intervals]

    async def _look(self) -> dict[str, Any]:
        if self._case.intervals:
            found, self._cursor = self.machine.log(0, self._cursor)
            self._intervals += found
        self._observe({}, {})
        executed_ns = self.machine.executed_ns(0)
        now_ns = self.machine.look()
        told = {each.allocation.id: each for each in (await self._node.status()).allocations}
        # Shares are told of the window, or of the allocation's life where that is shorter.
        life_ns = now_ns - self._opened_ns
        of_ns = min(CONFIG.window_ns, life_ns)
        of_step = {"now_ns": now_ns, "told_of_ns": of_ns, "told_of_all": of_ns == life_ns}
        return (
            of_step
            | {
                "executed_ns": {name: executed_ns.get(name, 0) for name in self._clients},
                "rounds": {name: sum(each.rounds() for each in running) for name, running in self._of.items()},
                "gpu_ns": {name: round(each.gpu_percent * of_ns / 100) for name, each in told.items()},
                "held_ns": {name: round(each.held_percent * of_ns / 100) for name, each in told.items()},
                "held_total_ns": {name: each.held_total_ns for name, each in told.items()},
                "gpu_total_ns": {name: each.gpu_total_ns for name, each in told.items()},
                "waited_total_ns": {name: each.waited_total_ns for name, each in told.items()},
                "longest_wait_ns": {name: each.longest_wait_ns for name, each in told.items()},
                "wanted_percent": {name: each.wanted_percent for name, each in told.items()},
                "due_percent": {name: each.due_percent for name, each in told.items()},
                "met_ratio": {name: each.guarantee_met_ratio for name, each in told.items()},
                "memory_bytes": {name: each.memory_used_bytes for name, each in told.items()},
                "offences": {name: _counted(each.offences) for name, each in told.items()},
                "driver_bytes": self._driver_bytes(),
            }
            | self._opened()
        )

    def _opened(self) -> dict[str, Any]:
        """What one that only opens gates reads in the clients' pages, and has heard of them."""
        node = self._node
        if not isinstance(node, Opener):
            return {}
        names = self._case.names
        return {"used": {name: node.used(name) for name in names}, "said": {name: node.said(name) for name in names}}

    def _observe_each_second(self) -> None:
        """As the manager does, but for NVML between it and the machine."""
        processes, now_ns = self.machine.processes(), time.monotonic_ns()
        elapsed_ns, self._seen_ns = now_ns - self._seen_ns, now_ns
        before, self._seen_executed_ns = self._seen_executed_ns, {each.id: each.executed_ns[0] for each in processes}
        used_ns = {each.pid: each.executed_ns[0] - before.get(each.id, 0) for each in processes}
        active = {pid: percent for pid, ns in used_ns.items() if (percent := 100 * ns // elapsed_ns)}
        busy_percent = min(100, 100 * sum(used_ns.values()) // elapsed_ns)
        self._observe({UUID: busy_percent}, {UUID: active} if self._case.named else {})
        self._loop.call_later(INTERVAL_S, self._observe_each_second)

    def _glance(self, loop: Loop, node: Node) -> None:
        """The same of what processes have alone, where an answer waits for it."""
        if node.glances.wanted.is_set():
            node.glances.begin()
            node.glances.deliver({UUID: self._held()})
        loop.call_later(GLANCE_S, self._glance, loop, node)

    def _held(self) -> dict[int, int | None]:
        return {each.pid: each.memory_bytes[0] for each in self.machine.processes() if each.alive}

    def _observe(self, busy_percent: dict[str, int], active: dict[str, Mapping[int, int]]) -> None:
        self._node.look()
        held = self._held()
        used_mib = sum(size_bytes for size_bytes in held.values() if size_bytes) >> 20
        now_ns = time.monotonic_ns()
        self._node.observe(Observation(now_ns, (DEVICE,), {UUID: used_mib}, {UUID: held}, busy_percent, active))

    def _driver_bytes(self) -> dict[str, int]:
        """What each client has of the GPU's memory, contexts included, as the machine says."""
        found = dict.fromkeys(self._clients, 0)
        for process in self.machine.processes():
            found[process.tag] += process.memory_bytes[0] if process.alive else 0
        return found
