"""A process may call itself anything: bytes that are no text, too."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import NodeStatus
from tests.kit.manager.testbed import MIB, Testbed, in_own_folder
from tests.kit.processes.waiting import PATIENCE_S

NAMED = """
import ctypes, sys, time
from pathlib import Path
from tests.kit.manager.testbed import MIB
from tests.kit.manager.wire_client import WireClient
from cuda_hook import wire
PR_SET_NAME = 15
assert ctypes.CDLL(None).prctl(PR_SET_NAME, b"\\xff) R 1 (\\xfe\\n") == 0
client = WireClient(Path(sys.argv[1]))
client.join()
answer = client.ask(wire.Reserve(1, 700 * MIB, 0, wire.MemoryKind.PLAIN))
client.close()
print(answer.granted, flush=True)
time.sleep(600)
"""
"""Gets memory, loses its connection, and goes on, under a name that is no UTF-8 and has a parenthesis."""


@pytest.fixture
def guest() -> Iterator[Testbed]:
    """Its driver lists no processes: who has ended, the manager sees by itself."""
    with in_own_folder(lambda root: Testbed(root, nvml="vgpu"), "es-names-") as testbed:
        yield testbed


def held_bytes(status: NodeStatus) -> int:
    return status.allocations[0].memory_used_bytes


def test_what_a_process_calls_itself_hides_neither_it_nor_its_end(guest: Testbed) -> None:
    manager = guest.manager()
    with guest.calls() as calls:
        allocation = Allocation(id="one", device_ids=guest.uuids[:1], request_percent=50, memory_mib=1024)
        held = calls.hold(allocation, wait_for_manager=False)
        next(held)
        program = [sys.executable, "-c", NAMED, str(guest.folder("one") / "hook.sock")]
        with subprocess.Popen(program, env=guest.environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "True\n"
                guest.until(lambda status: any(each.dying for each in status.allocations[0].clients))
                assert held_bytes(guest.status()) >= 700 * MIB
            finally:
                process.kill()
            guest.until(lambda status: held_bytes(status) == 0)
            process.wait(PATIENCE_S)
    assert "Traceback" not in manager.log()
    assert manager.end() == 0
