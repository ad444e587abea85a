"""What programs see of a GPU that fails."""

from tests.kit.machine.simulated import MS, Simulated

WORKS = """
cu.start()
function = cu.function()
print("works", flush=True)
codes, begin = [], time.monotonic()
while not codes or (codes[-1] == 0 and time.monotonic() - begin < 30):
    cu.launch(function, 5_000_000)
    codes.append(cu.cuCtxSynchronize())
place = ctypes.c_void_p()
result([codes[-1], cu.launch(function, 1), cu.cuMemAlloc_v2(ctypes.byref(place), 1), cu.cuStreamQuery(None),
        cu.cuCtxCreate_v2(ctypes.byref(place), 0, 0), cu.cuCtxCreate_v2(ctypes.byref(place), 0, 1)])
"""


def test_work_on_a_lost_gpu_fails_and_goes_on_on_the_other(simulated: Simulated) -> None:
    program = simulated.python(WORKS)
    assert program.line() == "works"
    simulated.machine.inject_lost(0)
    assert program.result() == [719, 719, 719, 719, 46, 0]
    assert [gpu.lost for gpu in simulated.machine.gpus()] == [True, False]
    assert simulated.machine.gpus()[0].xids == (79,)


def test_work_on_a_gpu_that_was_reset_fails_until_the_program_starts_anew(simulated: Simulated) -> None:
    program = simulated.python(WORKS)
    assert program.line() == "works"
    simulated.machine.reset(0)
    assert program.result() == [719, 719, 719, 719, 0, 0]
    assert simulated.burn("", "--seconds", 0.05, "--mode", "sync").result()["launches"] > 0


def test_a_double_bit_error_ends_the_contexts_but_not_the_gpu(simulated: Simulated) -> None:
    program = simulated.python(WORKS)
    assert program.line() == "works"
    simulated.machine.inject_ecc(0, double=True)
    assert program.result() == [214, 214, 214, 214, 0, 0]


def test_what_can_be_corrected_changes_nothing(simulated: Simulated) -> None:
    simulated.machine.inject_ecc(0)
    simulated.machine.inject_xid(0, 63)
    assert simulated.burn("", "--seconds", 0.05, "--mode", "sync").result()["launches"] > 0


def test_a_waiter_is_told_of_a_fault_while_it_waits(simulated: Simulated) -> None:
    script = """
cu.start()
cu.launch(cu.function(), 60_000_000_000)
print("waits", flush=True)
result([cu.cuCtxSynchronize(), time.monotonic_ns()])
"""
    program = simulated.python(script)
    assert program.line() == "waits"
    simulated.until(lambda: simulated.machine.gpus()[0].busy_ns > MS)
    simulated.machine.inject_xid(0, 79)
    assert program.result()[0] == 719
