"""Work that nothing can interrupt for hundreds of milliseconds: what it takes from others is owed to them."""

import pytest

from edgeshare.contract.units import NS_PER_MS
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Program, Step, Thread
from tests.kit.virtual.world import World

NODES = 20
LIGHT_PERCENT, LONG_PERCENT = 80, 20


def long_graphs(graph_ms: int) -> Program:
    """One graph after the other, each waited for, and a pause."""
    steps = (
        *(Step(kind="capture", stream=1, count=NODES), Step(kind="graph", stream=1)),
        *(Step(kind="wait_stream", stream=1), Step(kind="think", amount=50 * NS_PER_MS), Step(kind="round")),
    )
    return Program(kernels=step_programs.kernels(1000 * graph_ms / NODES), threads=(Thread(steps=steps, again=1),))


@pytest.mark.parametrize("graph_ms", [100, 400])
@pytest.mark.parametrize(("kernel_us", "count", "think_us"), [(2000, 1, 500), (1000, 4, 2000)])
def test_who_pauses_has_what_is_due_beside_long_graphs(
    world: World, kernel_us: int, count: int, think_us: int, graph_ms: int
) -> None:
    """At each pause the other one could go before it, and was owed nothing less for it."""
    light = step_programs.think(kernel_us, count, think_us)
    clients = (
        Client(program=light, percent=LIGHT_PERCENT),
        Client(program=long_graphs(graph_ms), percent=LONG_PERCENT),
    )
    report = world.run(Case(clients=clients, settle_ms=2000, measure_ms=12_000))
    alone = kernel_us * count / (kernel_us * count + think_us)
    assert report.busy_percent("c0") >= 0.95 * LIGHT_PERCENT * alone
    assert report.busy_percent("c1") >= 0.9 * LONG_PERCENT
