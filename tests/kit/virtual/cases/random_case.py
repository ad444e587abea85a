"""Random programs, alone or beside rivals: what a seed's number stands for. Pure."""

from random import Random

from edgeshare.contract.units import NS_PER_US
from tests.kit.virtual.cases.case import MEASURED_MS, Case, Client, Kernel, Program, Step, Thread, measured_ms
from tests.kit.virtual.cases.paces import PACES

MIB = 1 << 20

LENGTHS_US = (2, 5, 20, 100, 400, 1000, 5000, 20_000)
THINKS_US = (50, 300, 2000, 20_000)
SPLITS = {2: ((50, 50), (70, 30), (90, 10)), 3: ((50, 30, 20), (60, 30, 10)), 4: ((25, 25, 25, 25), (70, 10, 10, 10))}
MEMORY_MIB = 600
"""A context of 256 MiB, which the cap does not have to hold until the driver was looked at, and some buffers."""


def random_case(number: int) -> Case:
    """The same for the same number: alone if it is even, beside rivals if it is odd."""
    pick = Random(number)
    alone = number % 2 == 0
    if alone:
        clients = [Client(program=_program(pick, alone), percent=pick.choice((30, 60, 99)), memory_mib=MEMORY_MIB)]
    else:
        percents = pick.choice(SPLITS[pick.choice((2, 2, 3, 4))])
        clients = [Client(program=_program(pick, alone), percent=each, memory_mib=MEMORY_MIB) for each in percents]
    case = Case(
        clients=tuple(clients),
        seed=number,
        noise=2,
        pace=pick.choice(tuple(PACES)),
        scheduling=pick.choice(("fifo", "timeslice")),
    )
    needed_ms = measured_ms(*(client.program for client in clients))
    return case.model_copy(update={"settle_ms": needed_ms // 2, "measure_ms": needed_ms})


def overlapping_case(number: int) -> Case:
    """The same on a device whose engines overlap. That takes many times as long to simulate: it is measured no longer
    than others."""
    usual = {"settle_ms": MEASURED_MS // 2, "measure_ms": MEASURED_MS}
    return random_case(number).model_copy(update={"overlap": True, **usual})


def case_of_two(number: int) -> Case:
    """The same with two processes in the first allocation, each of which runs the program."""
    case = random_case(number)
    two = case.clients[0].model_copy(update={"processes": 2, "memory_mib": 2 * MEMORY_MIB})
    return case.model_copy(update={"clients": (two, *case.clients[1:])})


VARIANTS = {"engines overlap": overlapping_case, "two processes": case_of_two}
"""One of ten random cases is run like this, too."""


def _program(pick: Random, alone: bool) -> Program:
    kernels = _kernels(pick)
    count = pick.choice((1, 1, 2, 2, 3, 4))
    in_turn = count > 1 and pick.random() < 0.4
    think_us = pick.choice(THINKS_US) if pick.random() < (0.4 if alone else 0.25) else 0
    threads = []
    for index in range(count):
        steps, again = _begin(pick, index, count, len(kernels))
        body = _body(pick, index, len(kernels), think_us, in_turn)
        if in_turn:
            body = [Step(kind="take", object=index), *body, Step(kind="pass", object=(index + 1) % count)]
            if index == 0:
                # Somebody has to begin.
                steps.append(Step(kind="pass", object=0))
                again += 1
        threads.append(Thread(steps=(*steps, *body, Step(kind="round")), again=again))
    return Program(kernels=kernels, threads=tuple(threads))


def _kernels(pick: Random) -> tuple[Kernel, ...]:
    count = pick.choice((1, 1, 2, 8, 40))
    lengths_us = [pick.choice(LENGTHS_US)] * count if pick.random() < 0.6 else pick.choices(LENGTHS_US, k=count)
    # Several kernels of one function take now so long, now so long.
    functions = 1 if count <= 8 and pick.random() < 0.2 else count
    return tuple(Kernel(duration_ns=us * NS_PER_US, function=index % functions) for index, us in enumerate(lengths_us))


def _begin(pick: Random, index: int, threads: int, kernels: int) -> tuple[list[Step], int]:
    """What a thread does once; its length is where the thread goes on."""
    steps = []
    if pick.random() < 0.2:
        captured = Step(kind="capture", object=index, stream=index + 1, count=pick.choice((1, 5, 20)))
        steps.append(captured.model_copy(update={"amount": pick.randrange(kernels)}))
    if pick.random() < 0.3:
        steps.append(Step(kind="alloc", object=index, amount=pick.choice((1, 16, 64)) * MIB))
    return steps, len(steps)


def _body(pick: Random, index: int, kernels: int, think_us: int, in_turn: bool) -> list[Step]:
    stream = pick.choice((0, 0, index + 1))
    launches = pick.choice((1, 4, 16, 64))
    steps = []
    if pick.random() < 0.2:
        steps.append(Step(kind="graph", object=index, stream=stream, count=pick.choice((1, 4))))
    different = min(kernels, pick.choice((1, 1, 8, 40)), launches)
    first = pick.randrange(kernels)
    for each in range(different):
        count = max(1, launches // different)
        steps.append(Step(kind="launch", object=(first + each) % kernels, stream=stream, count=count))
    steps += _memory(pick, index, stream)
    steps += _wait(pick, index, stream, in_turn)
    if think_us:
        steps.append(Step(kind=pick.choice(("think", "think", "compute")), amount=think_us * NS_PER_US))
    return steps


def _memory(pick: Random, index: int, stream: int) -> list[Step]:
    """Now and then buffers near the cap come and go, and something is copied."""
    chance = pick.random()
    if chance < 0.1:
        large = pick.choice((100, 300, 500)) * MIB
        kinds = pick.choice((("alloc", "free"), ("alloc_async", "free_async")))
        return [Step(kind=kind, object=index + 8, stream=stream, amount=large) for kind in kinds]
    if chance < 0.2:
        kind = pick.choice(("upload", "download", "fill", "fetch"))
        return [Step(kind=kind, object=index, stream=stream, amount=pick.choice((4, 4096, 1 << 20)))]
    return []


def _wait(pick: Random, index: int, stream: int, in_turn: bool) -> list[Step]:
    """How a thread waits for its work; now and then not at all, though then the driver's queue holds it back."""
    chance = pick.random()
    if chance < 0.2 and not in_turn:
        return []
    if chance < 0.5:
        return [Step(kind="wait")]
    if chance < 0.8:
        return [Step(kind="wait_stream", stream=stream)]
    if chance < 0.9:
        return [Step(kind="query_stream", stream=stream, amount=20 * NS_PER_US)]
    return [Step(kind="record", object=index, stream=stream), Step(kind="wait_event", object=index)]
