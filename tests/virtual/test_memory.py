"""Memory's books: after any sequence what the manager counts is what the client holds."""

from random import Random

import pytest
from case import Case, Client, Fault, Kernel, Program, Step, Thread
from world import World

from simgpu.create import CONTEXT_OVERHEAD_MIB

MIB = 1 << 20
CAP_MIB = 956
CONTEXT_BYTES = CONTEXT_OVERHEAD_MIB * MIB
SIZES_MIB = (1, 3, 64, 200, 500, 650)


def sequence(number: int, threads: int) -> Program:
    """Buffers come and go, plain and from a pool, until the cap refuses; then all threads end with what they have."""
    pick = Random(number)
    made = []
    for thread in range(threads):
        own = range(thread * 4, thread * 4 + 4)
        steps = []
        for _ in range(pick.randrange(5, 60)):
            kind = pick.choice(("alloc", "free", "alloc_async", "free_async", "launch", "wait_stream", "think"))
            if kind == "launch":
                steps.append(Step(kind=kind, stream=thread + 1, count=pick.choice((1, 8))))
            elif kind == "think":
                steps.append(Step(kind=kind, amount=pick.choice((10_000, 1_000_000))))
            else:
                amount = pick.choice(SIZES_MIB) * MIB
                steps.append(Step(kind=kind, object=pick.choice(own), stream=thread + 1, amount=amount))
        # A buffer is given back by the call that fits how it was taken, so that both kinds of free are tried on it.
        made.append(Thread(steps=(*steps, Step(kind="wait_stream", stream=thread + 1)), again=len(steps) + 1))
    return Program(kernels=(Kernel(duration_ns=100_000),), threads=tuple(made))


def case(number: int, *faults: Fault) -> Case:
    """Two clients, one of them with several threads."""
    clients = tuple(
        Client(program=sequence(2 * number + index, threads), percent=50, memory_mib=CAP_MIB)
        for index, threads in enumerate((1, 3))
    )
    return Case(clients=clients, seed=number, noise=2, settle_ms=400, measure_ms=100, step_ms=50, faults=faults)


@pytest.mark.parametrize("number", [pytest.param(n, marks=() if n < 10 else pytest.mark.whole) for n in range(100)])
def test_the_books_hold_what_the_clients_hold(world: World, number: int) -> None:
    report = world.run(case(number))
    for name, outcome in report.clients.items():
        assert outcome["running"] == 0, report.case.line()
        last = report.steps[-1]
        # In the pool and for the context the driver keeps more than what was asked for.
        assert outcome["held_bytes"] <= last["driver_bytes"][name] - CONTEXT_BYTES
        assert last["memory_bytes"][name] == last["driver_bytes"][name], report.case.line()
        # Until the driver was looked at for the first time nobody knew what a context takes.
        assert last["driver_bytes"][name] <= CAP_MIB * MIB + CONTEXT_BYTES


@pytest.mark.parametrize("number", [pytest.param(n, marks=() if n < 5 else pytest.mark.whole) for n in range(50)])
def test_nothing_is_on_the_books_of_a_client_that_was_killed(world: World, number: int) -> None:
    points = world.run(case(number)).points_of["c1"]
    killed = Fault(action="kill", process="c1", at_point=1 + Random(number).randrange(points // 2))
    report = world.run(case(number, killed))
    assert report.steps[-1]["memory_bytes"]["c1"] == 0, report.case.line()
