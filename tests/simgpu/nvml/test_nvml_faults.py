"""nvidia-ml-py, unchanged, on the simulated library: what it tells of faults, and what a reset makes of them."""

from collections.abc import Callable

from tests.kit.machine.nvml_script import HEAD
from tests.kit.machine.simulated import Simulated


def test_faults_are_events(simulated: Simulated) -> None:
    script = """
zero, one = nv.nvmlDeviceGetHandleByIndex(0), nv.nvmlDeviceGetHandleByIndex(1)
events = nv.nvmlEventSetCreate()
nv.nvmlDeviceRegisterEvents(one, nv.nvmlDeviceGetSupportedEventTypes(one), events)
print("listens", flush=True)
found = []
for _ in range(4):
    event = nv.nvmlEventSetWait_v2(events, 60_000)
    found.append([event.eventType, event.eventData])
    last = event.device
lost = [failure(nv.nvmlEventSetWait_v2, events, 60_000), failure(nv.nvmlDeviceGetHandleByIndex, 1),
        failure(nv.nvmlDeviceGetName, one), nv.nvmlDeviceGetName(zero)]
nv.nvmlEventSetFree(events)
result([found, lost, nv.nvmlDeviceGetCount()])
"""
    simulated.machine.inject_xid(1, 31)
    listener = simulated.python(HEAD + script)
    assert listener.line() == "listens"
    simulated.machine.inject_xid(0, 13)
    simulated.machine.inject_xid(1, 43)
    simulated.machine.inject_ecc(1)
    simulated.machine.inject_ecc(1, double=True)
    simulated.machine.inject_lost(1)
    # What was before the listener is not told, nor what happens to another GPU.
    assert listener.result() == [[[8, 43], [1, 0], [2, 0], [8, 79]], [15, 15, 15, "Tesla T4"], 2]


def test_waiting_for_an_event_ends_with_its_time(simulated: Simulated) -> None:
    script = """
events = nv.nvmlEventSetCreate()
zero = nv.nvmlDeviceGetHandleByIndex(0)
nv.nvmlDeviceRegisterEvents(zero, nv.nvmlEventTypeXidCriticalError, events)
begin = time.monotonic()
timeout = failure(nv.nvmlEventSetWait_v2, events, 50)
result([timeout, time.monotonic() - begin >= 0.05, failure(nv.nvmlDeviceRegisterEvents, zero, 0x10, events)])
"""
    assert simulated.python(HEAD + script).result() == [10, True, 3]


def test_ecc_errors_are_counted(simulated: Simulated) -> None:
    for _ in range(3):
        simulated.machine.inject_ecc(0)
    simulated.machine.inject_ecc(0, double=True)
    script = """
zero = nv.nvmlDeviceGetHandleByIndex(0)
result([nv.nvmlDeviceGetTotalEccErrors(zero, kind, 0) for kind in (0, 1)])
"""
    assert simulated.python(HEAD + script).result() == [3, 1]


def test_a_reset_brings_a_lost_gpu_back_and_begins_its_counts_anew(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=2, model="a100")
    machine = simulated.machine
    machine.inject_ecc(0)
    machine.inject_ecc(0, double=True)
    machine.inject_remap(0)
    script = """
zero, one = nv.nvmlDeviceGetHandleByIndex(0), nv.nvmlDeviceGetHandleByIndex(1)
def look():
    return [[nv.nvmlDeviceGetTotalEccErrors(zero, kind, counter) for kind in (0, 1) for counter in (0, 1)],
            nv.nvmlDeviceGetRemappedRows(zero)]
time.sleep(0.2)
before, energy = look(), nv.nvmlDeviceGetTotalEnergyConsumption(zero)
print("looked", flush=True)
while not failure(nv.nvmlDeviceGetName, zero):
    time.sleep(0.01)
lost = failure(nv.nvmlDeviceGetTotalEnergyConsumption, zero)
print("lost", flush=True)
while failure(nv.nvmlDeviceGetName, zero):
    time.sleep(0.01)
fresh, other = (nv.nvmlDeviceGetTotalEnergyConsumption(gpu) for gpu in (zero, one))
result([before, lost, look(), 0 < energy, fresh <= other - energy, other > energy])
"""
    program = simulated.python(HEAD + script)
    assert program.line() == "looked"
    machine.inject_lost(0)
    assert program.line() == "lost"
    machine.reset(0)
    before, lost, after, *energy = program.result()
    assert before == [[1, 1, 1, 1], [0, 0, 1, 0]]
    assert lost == 15
    # Volatile counts begin anew, aggregate ones go on; the row that waited is remapped.
    assert after == [[0, 1, 0, 1], [0, 1, 0, 0]]
    # What it had used when it was looked at, it lacks beside the other GPU, however long the reset was ago.
    assert energy == [True, True, True]


def test_a_gpu_of_before_ampere_remaps_no_rows(simulated: Simulated) -> None:
    script = "result(failure(nv.nvmlDeviceGetRemappedRows, nv.nvmlDeviceGetHandleByIndex(0)))"
    assert simulated.python(HEAD + script).result() == 3


def test_a_gpu_is_as_hot_as_a_fault_says(simulated: Simulated) -> None:
    simulated.machine.set_temperature(1, 97)
    script = "result([nv.nvmlDeviceGetTemperature(nv.nvmlDeviceGetHandleByIndex(index), 0) for index in (0, 1)])"
    assert simulated.python(HEAD + script).result() == [30, 97]
    simulated.machine.set_temperature(1, 0)
    assert simulated.python(HEAD + script).result() == [30, 30]


def test_a_card_without_ecc_says_so(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, model="rtx3090")
    script = """
zero = nv.nvmlDeviceGetHandleByIndex(0)
result([failure(nv.nvmlDeviceGetEccMode, zero), failure(nv.nvmlDeviceGetTotalEccErrors, zero, 0, 0),
        nv.nvmlDeviceGetSupportedEventTypes(zero)])
"""
    assert simulated.python(HEAD + script).result() == [3, 3, 8]
