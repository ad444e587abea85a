"""Many functions in turn, as in a step of a framework: a submission asks the slow way once a batch, not each time; and
where the host is slower than the device, the time for which that waits is not told as GPU time."""

import pytest

from edgeshare.contract.units import NS_PER_US
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Program, Step, Thread
from tests.kit.virtual.cases.paces import PACES
from tests.kit.virtual.world import World

ROUND_LAUNCHES = 400

TOLD_PERCENT = 2
"""How far the GPU time that is told may be off what was executed."""


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


def paced_by_the_host(lengths_us: tuple[int, ...], host_us: int, rounds: int) -> Program:
    """Launches them in turn, with work on the host after each; waits for the device after so many rounds, 0: never."""
    steps = [
        step
        for index in range(len(lengths_us))
        for step in (Step(kind="launch", object=index), Step(kind="compute", amount=host_us * NS_PER_US))
    ]
    wait = [Step(kind="wait")] if rounds else []
    return Program(
        kernels=step_programs.kernels(*lengths_us), threads=(Thread(steps=(*steps * max(rounds, 1), *wait)),)
    )


@pytest.mark.parametrize(("rounds", "rivals"), [(0, 0), (20, 0), (0, 1)])
@pytest.mark.parametrize(
    ("lengths_us", "host_us"),
    [
        ((100,), 160),
        ((80, 120, 60, 90, 100), 150),
        ((10, 30, 8, 60, 20), 40),
        ((300,), 400),
        ((300, 250, 280), 360),
        ((20, 2000), 1500),
        ((2000,), 3000),
        ((1000, 3000), 3000),
        ((5000,), 8000),
    ],
)
def test_time_for_which_the_device_waits_for_a_slower_host_is_no_gpu_time(
    world: World, lengths_us: tuple[int, ...], host_us: int, rounds: int, rivals: int
) -> None:
    is_told_as_executed(world, paced_by_the_host(lengths_us, host_us, rounds), rivals)


@pytest.mark.whole
@pytest.mark.parametrize("seed", [2, 5])
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize(
    ("lengths_us", "host_us", "rounds", "rivals"),
    [
        ((80, 120, 60, 90, 100), 150, 20, 0),
        ((5, 5, 5, 100), 50, 20, 0),
        ((700, 20, 20), 300, 20, 0),
        ((10_000, 50), 9000, 20, 0),
        ((300,), 400, 0, 1),
        ((700, 20, 20), 300, 0, 1),
        ((40, 400), 250, 0, 1),
    ],
)
def test_nor_is_it_whatever_the_first_launches_met_with(
    world: World, lengths_us: tuple[int, ...], host_us: int, rounds: int, rivals: int, pace: str, seed: int
) -> None:
    is_told_as_executed(world, paced_by_the_host(lengths_us, host_us, rounds), rivals, pace, seed)


@pytest.mark.parametrize(
    "pace", [pytest.param(pace, marks=() if pace == "plain" else pytest.mark.whole) for pace in PACES]
)
@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize(
    ("lengths_us", "hosts_us"),
    [((2000, 20), (6000, 120)), ((5000, 100), (9000, 300)), ((400, 10), (900, 40)), ((20_000, 50), (50_000, 200))],
)
def test_nor_is_it_where_one_thread_seldom_launches_what_is_long_and_one_often_what_is_short(
    world: World, lengths_us: tuple[int, int], hosts_us: tuple[int, int], streams: int, pace: str
) -> None:
    threads = [
        Thread(
            steps=(
                Step(kind="launch", object=kernel, stream=stream),
                Step(kind="compute", amount=host_us * NS_PER_US),
            )
        )
        for kernel, (host_us, stream) in enumerate(zip(hosts_us, (1, streams), strict=True))
    ]
    program = Program(kernels=step_programs.kernels(*lengths_us), threads=tuple(threads))
    is_told_as_executed(world, program, rivals=0, pace=pace)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "pace", [pytest.param(pace, marks=() if pace == "plain" else pytest.mark.whole) for pace in PACES]
)
@pytest.mark.parametrize("length_us", [2, 5, 10])
def test_nor_is_it_where_threads_never_leave_a_stream_to_one_of_them(
    world: World, length_us: int, pace: str, seed: int
) -> None:
    """Three launch as fast as they can, of which one waits for the device now and then: none is timed by itself, but
    where the others wait for that."""
    launch = Step(kind="launch", stream=1)
    waits = Thread(steps=(*[launch] * 16, Step(kind="wait_stream", stream=1)))
    program = Program(kernels=step_programs.kernels(length_us), threads=(waits, *[Thread(steps=(launch,))] * 2))
    is_told_as_executed(world, program, rivals=0, pace=pace, seed=seed)


def is_told_as_executed(world: World, program: Program, rivals: int, pace: str = "plain", seed: int = 1) -> None:
    """Of the program, and of rivals that keep the device busy."""
    clients = (
        Client(program=program, percent=60),
        *[Client(program=step_programs.burn(1000), percent=40)] * rivals,
    )
    report = world.run(Case(clients=clients, settle_ms=500, measure_ms=8000, pace=pace, seed=seed))
    for name in report.case.names:
        assert abs(report.gpu_error_percent(name)) < TOLD_PERCENT
