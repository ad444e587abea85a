"""A manager with two programs that saturate a GPU, and with those who mean no good."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from bench.host import descriptors, resident_mib
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import NodeStatus
from tests.kit.manager.attacker import ATTACKERS, Attacker
from tests.kit.manager.busy import all_granted, burn
from tests.kit.manager.testbed import Manager, Testbed, share
from tests.kit.processes.waiting import PATIENCE_S

CONFIG = "max_records_per_s: 2000\nmax_clients: 8\n"
"""So little that an attack is more than that on a machine that is slow, too."""
VICTIMS = {"60": 60, "20": 20}


class Scene:
    """A manager, two programs with a share, and allocations of those who mean no good."""

    def __init__(self, testbed: Testbed, manager: Manager) -> None:
        self.testbed = testbed
        self.manager = manager

    def offences(self, status: NodeStatus) -> dict[str, int]:
        """Those of all attackers, so far."""
        told = [share(status, name).offences for name in ATTACKERS]
        return {kind: sum(each[kind] for each in told) for kind in told[0]}

    def counted(self, kinds: Collection[str], before: Mapping[str, int], status: NodeStatus) -> bool:
        """Whether there were more of each of these since then."""
        now = self.offences(status)
        return all(now[kind] > before[kind] for kind in kinds)

    def rss_mib(self) -> float:
        """The manager's memory."""
        return resident_mib(self.manager.process.pid)

    def descriptors(self) -> int:
        """How many the manager has open."""
        return descriptors(self.manager.process.pid)

    @contextmanager
    def under(self, act: Callable[[Attacker], None]) -> Iterator[Attacker]:
        """While somebody attacks."""
        over = threading.Event()
        attacker = Attacker(self.testbed.runtime_dir, over)
        failures: list[BaseException] = []

        def run() -> None:
            try:
                act(attacker)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield attacker
        finally:
            over.set()
            thread.join(PATIENCE_S)
            attacker.close()
        assert not failures, failures


@contextmanager
def a_scene(testbed: Testbed) -> Iterator[Scene]:
    manager = testbed.manager(CONFIG)
    with testbed.calls() as calls:
        held = []
        for name in ATTACKERS:
            wanted = Allocation(id=name, device_ids=testbed.uuids[:1], request_percent=6, memory_mib=100)
            held.append(calls.hold(wanted, wait_for_manager=False))
            next(held[-1])
        for name, percent in VICTIMS.items():
            burn(testbed, name, "--kernel-us", "1000", percent=percent)
        testbed.until(all_granted(len(VICTIMS)))
        yield Scene(testbed, manager)
