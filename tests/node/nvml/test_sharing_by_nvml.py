"""A manager with NVML as other platforms and drivers have it: shares and caps hold as far as it goes, what is lacking
is said once, and what nobody tells is not taken for nothing."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import NodeStatus
from sharemgr.node.metrics import exposition
from simgpu.create import CONTEXT_OVERHEAD_MIB
from simgpu.native import BURN
from simgpu.nvml_profiles import NVML_PROFILES, REFUSALS
from simgpu.trees import JETSONS, add_jetson
from tests.kit.manager.testbed import MIB, Testbed, in_own_folder
from tests.kit.processes.waiting import PATIENCE_S

INTEGRATED = {"jetson"}
"""The inventory of NVML lists none of these: their memory is the machine's."""
SERIAL = "1421919056789"
NO_MEMORY = {"wsl2", "vgpu"}
NO_PROCESSES = {"vgpu"}

LACKING = {
    "wsl2": ("MinorNumber", "its second version", "EventSetCreate", "RunningProcesses"),
    "vgpu": ("EventSetCreate", "RunningProcesses_v3"),
    "driver-470": ("its second version",),
}
"""What the manager's log says of each, once for a GPU or for the driver."""


NEEDED = (
    "DeviceGetCount_v2",
    "DeviceGetHandleByIndex_v2",
    "DeviceGetUUID",
    "DeviceGetMemoryInfo_v2",
    "DeviceGetMemoryInfo",
)
NO_NEED = (
    *("DeviceGetName", "DeviceGetMinorNumber", "DeviceGetPciInfo_v3", "DeviceGetMigMode"),
    *("DeviceGetComputeRunningProcesses_v2", "DeviceGetComputeRunningProcesses_v3"),
    *("DeviceGetUtilizationRates", "DeviceGetProcessUtilization"),
    *("DeviceGetTemperature", "DeviceGetTotalEnergyConsumption"),
)
"""What the manager asks of NVML at each look, without which it knows no GPU, and the rest."""

ALLOCATES = """
import ctypes
cuda, made, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(made), 0, 0) == 0
print(*(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20)) for mib in (600, 500)))
"""
"""What comes of 600 MiB, and of 500 more."""


@pytest.fixture(params=[name for name in NVML_PROFILES if name not in INTEGRATED])
def profiled(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    def made(root: Path) -> Testbed:
        return Testbed(root, nvml=request.param)

    with in_own_folder(made, "es-nvml-") as testbed:
        yield testbed


def two(testbed: Testbed, *options: str) -> None:
    """Two programs on GPU 0, with 30 % and 60 % of it."""
    for percent in (30, 60):
        testbed.fork(
            *testbed.run_arguments("--gpu", "0", "--percent", str(percent), "--memory-mib", "1024"),
            *("--", str(BURN), "--seconds", "600", *options),
        )


def working(status: NodeStatus) -> bool:
    """Whether both have joined, run, and were seen by a look at the driver."""
    shares = status.allocations
    return len(shares) == 2 and all(each.clients and each.grants for each in shares) and driver_sees(status, 2)


def driver_sees(status: NodeStatus, contexts: int) -> bool:
    return status.devices[0].memory_used_mib >= contexts * CONTEXT_OVERHEAD_MIB


def test_programs_run_side_by_side_and_what_is_not_known_is_said(profiled: Testbed) -> None:
    name = profiled.machine.nvml
    manager = profiled.manager()
    two(profiled)
    counted = [name in NO_MEMORY] * 2

    def told(status: NodeStatus) -> bool:
        overheads = [each.memory_overhead_bytes[0] for each in status.allocations]
        return working(status) and [not overhead for overhead in overheads] == counted

    status = profiled.until(told)
    device = status.devices[0]
    assert (device.healthy, list(device.unmanaged_processes)) == (True, [])
    assert (device.processes_unknown, device.process_memory_unknown) == (name in NO_PROCESSES, name in NO_MEMORY)
    table = profiled.edgeshare("status", "--runtime-dir", str(profiled.runtime_dir)).stdout
    assert ("not known" in table, "at least" in table) == (name in NO_PROCESSES, name in NO_MEMORY)
    lines = manager.log().splitlines()
    assert not [line for line in lines if "Traceback" in line]
    said = [line for line in lines if "refuses" in line]
    assert len(said) == len(set(said))
    for part in LACKING.get(name, ()):
        assert any(part in line for line in said), (part, lines)
    if name not in LACKING:
        assert said == []
    assert manager.end() == 0


def refuse(testbed: Testbed, answer: str, *functions: str) -> None:
    for function in functions:
        testbed.machine.set_nvml_answer(f"nvml{function}", answer)


def go_on(testbed: Testbed) -> None:
    """Both programs have more slices."""
    before = {each.allocation.id: each.grants for each in testbed.status().allocations}

    def more(status: NodeStatus) -> bool:
        return len(before) == 2 and all(each.grants > before[each.allocation.id] + 10 for each in status.allocations)

    testbed.until(more)


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_driver_that_begins_to_refuse_takes_nothing_from_who_runs_and_is_heard_again_afterwards(answer: str) -> None:
    with in_own_folder(Testbed, "es-nvml-") as testbed:
        manager = testbed.manager()
        two(testbed)
        testbed.until(working)
        refuse(testbed, answer, *NO_NEED)
        testbed.until(lambda status: status.devices[0].processes_unknown)
        go_on(testbed)
        # A GPU that says that it is lost is taken to be.
        assert testbed.status().devices[0].healthy == (answer != "lost")
        refuse(testbed, answer, *NEEDED)
        status = testbed.until(lambda status: not status.devices[0].healthy and not status.devices[0].memory_used_mib)
        assert "nvml" in status.devices[0].cause
        go_on(testbed)
        refuse(testbed, "as-ever", *NO_NEED, *NEEDED)
        testbed.until(lambda status: status.devices[0].healthy and working(status))
        assert list(testbed.status().devices[0].unmanaged_processes) == []
        go_on(testbed)
        lines = manager.log().splitlines()
        assert not [line for line in lines if "Traceback" in line]
        assert len(lines) < 40
        assert manager.end() == 0


def test_a_jetson_that_has_nvml_is_listed_once_by_its_devicetree_and_shared() -> None:
    with in_own_folder(lambda root: Testbed(root, nvml="jetson", gpus=1), "es-nvml-") as testbed:
        add_jetson(testbed.root / "host", JETSONS["agx-orin"], SERIAL)
        manager = testbed.manager(f"inventory: {{root: {testbed.root / 'host'}, sources: [nvml, jetson]}}\n")
        assert "ready, 1 devices" in manager.ready
        two(testbed)
        status = testbed.until(lambda status: [bool(each.grants) for each in status.allocations] == [True] * 2)
        (device,) = status.devices
        assert (device.id, device.healthy) == (SERIAL, True)
        assert manager.end() == 0
        lines = manager.log().splitlines()
        assert len([line for line in lines if "is not listed by NVML" in line]) == 1
        assert len([line for line in lines if "refuses" in line]) == 1, lines  # that faults are told
        assert not [line for line in lines if "Traceback" in line]


@pytest.mark.parametrize("nvml", ["wsl2", "vgpu", "driver-470"])
def test_a_cap_on_memory_holds_without_what_the_driver_tells(nvml: str) -> None:
    with in_own_folder(lambda root: Testbed(root, nvml=nvml), "es-nvml-") as testbed:
        testbed.manager()
        done = testbed.edgeshare(
            *testbed.run_arguments("--gpu", "0", "--percent", "50", "--memory-mib", "1024"),
            *("--", sys.executable, "-c", ALLOCATES),
        )
        assert (done.returncode, done.stdout) == (0, "0 2\n"), done.stderr


FORSAKEN = """
import ctypes, os, sys, time
from pathlib import Path
from tests.kit.manager.testbed import MIB
from tests.kit.manager.wire_client import WireClient
from cuda_hook import wire
PR_SET_NAME = 15
assert ctypes.CDLL(None).prctl(PR_SET_NAME, os.fsencode(sys.argv[2])) == 0
client = WireClient(Path(sys.argv[1]))
client.join()
answer = client.ask(wire.Reserve(1, 700 * MIB, 0, wire.MemoryKind.PLAIN))
client.close()
print(answer.granted, flush=True)
time.sleep(600)
"""
"""Gets memory, loses its connection, and goes on, under a name that is given."""


@pytest.fixture
def guest() -> Iterator[Testbed]:
    """Its driver lists no processes."""
    with in_own_folder(lambda root: Testbed(root, nvml="vgpu"), "es-nvml-") as testbed:
        yield testbed


def looked(testbed: Testbed) -> None:
    """Waits until the manager has looked at the driver twice more."""
    stranger = subprocess.Popen([BURN, "--seconds", "600"], env=testbed.environment, stdout=subprocess.DEVNULL)
    try:
        testbed.until(lambda status: driver_sees(status, 1))
    finally:
        stranger.kill()
        stranger.wait(PATIENCE_S)
    testbed.until(lambda status: not driver_sees(status, 1))


@pytest.mark.parametrize("name", [b"python3", b"\xff) R 1 (\xfe\n"], ids=["a name", "bytes that are no text"])
def test_who_lost_its_connection_has_its_memory_until_it_ends_where_nobody_lists_it(
    guest: Testbed, name: bytes
) -> None:
    manager = guest.manager()
    with guest.calls() as calls:
        allocation = Allocation(id="one", device_ids=guest.uuids[:1], request_percent=50, memory_mib=1024)
        held = calls.hold(allocation, wait_for_manager=False)
        next(held)
        program = [sys.executable, "-c", FORSAKEN, guest.folder("one") / "hook.sock", name]
        process = subprocess.Popen(program, env=guest.environment, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
            guest.until(lambda status: any(each.dying for each in status.allocations[0].clients))
            looked(guest)
            assert guest.status().allocations[0].memory_used_bytes >= 700 * MIB
        finally:
            process.kill()
        # It has ended, whether or not its parent has asked for it.
        guest.until(lambda status: status.allocations[0].memory_used_bytes == 0)
        process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in manager.log()
    assert manager.end() == 0


def test_what_is_not_known_is_in_no_metric_as_nothing(guest: Testbed) -> None:
    guest.manager()
    two(guest)
    status = guest.until(working)
    page = exposition(status).decode()
    assert f'edgeshare_device_processes_known{{device="{guest.uuids[0]}",index="0",model="Tesla T4"}} 0' in page
    assert f'edgeshare_device_process_memory_known{{device="{guest.uuids[0]}",index="0",model="Tesla T4"}} 0' in page
    assert "edgeshare_device_unmanaged_processes{" not in page
    assert "edgeshare_allocation_memory_overhead_bytes{" not in page
    assert "edgeshare_allocation_memory_used_bytes{" in page
