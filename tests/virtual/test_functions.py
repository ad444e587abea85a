"""Many functions in turn, as in a step of a framework: a submission asks the slow way once a batch, not each time."""

import pytest

from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Program, Step, Thread
from tests.kit.virtual.world import World

ROUND_LAUNCHES = 400


def in_turn(functions: int, threads: int) -> Program:
    """Each thread launches all of them in turn, in a stream of its own, and waits for it now and then."""
    made = []
    for stream in range(1, threads + 1):
        steps = [Step(kind="launch", object=index, stream=stream) for index in range(functions)]
        steps *= ROUND_LAUNCHES // functions
        made.append(Thread(steps=(*steps, Step(kind="wait_stream", stream=stream), Step(kind="round"))))
    return Program(kernels=step_programs.kernels(*[1] * functions), threads=tuple(made))


def points_per_launch(world: World, program: Program, hooked: bool) -> float:
    """How often it touches the world around it, learning what its functions cost included."""
    report = world.run(Case(clients=(Client(program=program, percent=50),), hooked=hooked))
    return report.points_of["c0"] / (report.clients["c0"]["rounds"] * ROUND_LAUNCHES)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("functions", [1, 200, 400])
def test_functions_in_turn_are_launched_without_a_look_at_the_clock(world: World, functions: int, threads: int) -> None:
    program = in_turn(functions, threads)
    # One that asks looks at the clock at least.
    assert points_per_launch(world, program, hooked=True) < points_per_launch(world, program, hooked=False) + 0.25
