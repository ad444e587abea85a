"""Memory's books: after any sequence what the manager counts is what the client holds."""

from random import Random

import pytest

from simgpu.create import CONTEXT_OVERHEAD_MIB
from tests.kit.virtual.cases.case import Case, Client, Fault, Kernel, Program, Step, Thread
from tests.kit.virtual.world import World

MIB = 1 << 20
CAP_MIB = 956
CONTEXT_BYTES = CONTEXT_OVERHEAD_MIB * MIB
SIZES_MIB = (1, 3, 64, 200, 500, 650)


KINDS = ("alloc", "free", "alloc_async", "free_async", "launch", "wait_stream", "think")
PLAIN_KINDS = tuple(kind for kind in KINDS if "async" not in kind)


def sequence(number: int, threads: int, kinds: tuple[str, ...] = KINDS) -> Program:
    """Buffers come and go, plain and from a pool, until the cap refuses; then all threads end with what they have."""
    pick = Random(number)
    made = []
    for thread in range(threads):
        own = range(thread * 4, thread * 4 + 4)
        steps = []
        for _ in range(pick.randrange(5, 60)):
            kind = pick.choice(kinds)
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


def case(number: int, *faults: Fault, kinds: tuple[str, ...] = KINDS) -> Case:
    """Two clients, one of them with several threads."""
    clients = tuple(
        Client(program=sequence(2 * number + index, threads, kinds), percent=50, memory_mib=CAP_MIB)
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


SMALL_MIB = 512


def fills(*sizes_bytes: int) -> Program:
    """As soon as there is a context buffers of these sizes, one after the other."""
    steps = tuple(Step(kind="alloc", object=index, amount=size) for index, size in enumerate(sizes_bytes))
    return Program(kernels=(Kernel(duration_ns=1000),), threads=(Thread(steps=steps, again=len(steps)),))


def fresh(*clients: Client) -> Case:
    """On a GPU of a model of which no context was seen, and no look comes before an answer has to."""
    return Case(clients=clients, unseen=True, settle_ms=0, measure_ms=700, step_ms=700)


def test_a_program_that_fills_its_cap_at_once_after_the_first_context_of_a_model_does_not_pass_it(world: World) -> None:
    left_bytes = SMALL_MIB * MIB - CONTEXT_BYTES
    whole, part = left_bytes + 1, left_bytes // 2
    report = world.run(fresh(Client(program=fills(whole, part, part, 1), percent=50, memory_mib=SMALL_MIB)))
    assert max(step["driver_bytes"]["c0"] for step in report.steps) == SMALL_MIB * MIB
    outcome = report.clients["c0"]
    assert (outcome["running"], outcome["refused"], outcome["held_bytes"]) == (0, 2, left_bytes)


def test_processes_that_fill_one_cap_at_once_do_not_pass_it_together(world: World) -> None:
    client = Client(program=fills(*[100 * MIB] * 10), percent=50, memory_mib=2 * SMALL_MIB, processes=3)
    report = world.run(fresh(client))
    assert report.clients["c0"]["running"] == 0
    assert max(step["driver_bytes"]["c0"] for step in report.steps) == 3 * CONTEXT_BYTES + 200 * MIB


@pytest.mark.parametrize("number", [pytest.param(n, marks=() if n < 5 else pytest.mark.whole) for n in range(50)])
def test_no_sequence_passes_its_cap_on_a_model_of_which_no_context_was_seen(world: World, number: int) -> None:
    """Of plain buffers: a pool grows by steps, and is counted when it has."""
    report = world.run(case(number, kinds=PLAIN_KINDS).model_copy(update={"unseen": True}))
    for name, outcome in report.clients.items():
        assert outcome["running"] == 0, report.case.line()
        last = report.steps[-1]
        assert last["memory_bytes"][name] == last["driver_bytes"][name], report.case.line()
        assert max(step["driver_bytes"][name] for step in report.steps) <= CAP_MIB * MIB, report.case.line()
