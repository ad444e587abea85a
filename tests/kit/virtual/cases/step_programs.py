"""Programs that tests run: what people's programs do, as steps. Pure."""

from collections.abc import Sequence

from tests.kit.virtual.cases.case import ANY, Kernel, Program, Step, Thread

NS_PER_US = 1000


def kernels(*lengths_us: float, blocks: int = 1) -> tuple[Kernel, ...]:
    """One kernel of each length, each a function of its own."""
    return tuple(
        Kernel(duration_ns=round(us * NS_PER_US), function=index, blocks=blocks) for index, us in enumerate(lengths_us)
    )


def burn(kernel_us: float, wait_every: int = 0, blocks: int = 1) -> Program:
    """Keeps the queue full; waits for all after so many launches, where that is not 0."""
    steps = (Step(kind="launch", count=wait_every or 1), *([Step(kind="wait")] if wait_every else []))
    return Program(kernels=kernels(kernel_us, blocks=blocks), threads=(Thread(steps=(*steps, Step(kind="round"))),))


def wait_each(kernel_us: float, compute_us: float = 0) -> Program:
    """Launches one kernel, waits for it, uses the processor for a while."""
    steps = [Step(kind="launch"), Step(kind="wait_stream")]
    if compute_us:
        steps.append(Step(kind="compute", amount=round(compute_us * NS_PER_US)))
    return Program(kernels=kernels(kernel_us), threads=(Thread(steps=(*steps, Step(kind="round"))),))


def think(kernel_us: float, count: int, think_us: float) -> Program:
    """As inference does: a few kernels, a wait, a pause on the host."""
    return _bursts(kernel_us, count, Step(kind="think", amount=round(think_us * NS_PER_US)))


def periodic(kernel_us: float, count: int, period_us: float) -> Program:
    """As a camera's pictures come: a few kernels at each multiple of a period, and a wait."""
    return _bursts(kernel_us, count, Step(kind="due", amount=round(period_us * NS_PER_US)))


def _bursts(kernel_us: float, count: int, pause: Step) -> Program:
    steps = (Step(kind="launch", count=count), Step(kind="wait_stream"), pause, Step(kind="round"))
    return Program(kernels=kernels(kernel_us), threads=(Thread(steps=steps),))


def mixed(*weighed_us: tuple[float, int]) -> Program:
    """Keeps the queue full with kernels drawn by weight."""
    drawn = tuple(
        Kernel(duration_ns=round(us * NS_PER_US), function=index, weight=weight)
        for index, (us, weight) in enumerate(weighed_us)
    )
    return Program(kernels=drawn, threads=(Thread(steps=(Step(kind="launch", object=ANY), Step(kind="round"))),))


def graphs(kernel_us: float, nodes: int) -> Program:
    """Keeps the queue full with a graph that was captured once."""
    steps = (Step(kind="capture", stream=1, count=nodes), Step(kind="graph", stream=1), Step(kind="round"))
    return Program(kernels=kernels(kernel_us), threads=(Thread(steps=steps, again=1),))


def turns(kernels_us: Sequence[float], threads: int, launches: int = 1, own: bool = True) -> Program:
    """Threads launch one after the other, as an autograd thread and its caller do: each its kernels in turn, ``own``
    ones or all the same."""
    per_thread = len(kernels_us)
    made = []
    for index in range(threads):
        first = index * per_thread if own else 0
        steps = [Step(kind="take", object=index)]
        steps += [Step(kind="launch", object=first + each, count=launches) for each in range(per_thread)]
        if index == threads - 1:
            steps += [Step(kind="wait"), Step(kind="round")]
        steps.append(Step(kind="pass", object=(index + 1) % threads))
        made.append(Thread(steps=tuple(steps)))
    first_steps = made[0].steps
    # Somebody has to begin: the first thread takes no turn in its first round.
    made[0] = Thread(steps=(*first_steps[1:], *first_steps), again=len(first_steps) - 1)
    return Program(kernels=kernels(*(tuple(kernels_us) * (threads if own else 1))), threads=tuple(made))


def phases(kernels_us: Sequence[float], *kinds: str, rounds: int = 20) -> Program:
    """What bench/hook/turns.c does, phase after phase: in each so many rounds of twice these kernels, then a wait. In
    ``own`` and ``same`` a second thread launches in turn with the first, kernels of its own or the same ones; in
    ``one`` it stands still."""

    def launches(first: int) -> list[Step]:
        return [Step(kind="launch", object=first + index, count=2) for index in range(len(kernels_us))]

    first_steps: list[Step] = []
    second_steps: list[Step] = []
    for kind in kinds:
        for _ in range(rounds):
            first_steps += launches(0)
            if kind != "one":
                first_steps += [Step(kind="pass", object=1), Step(kind="take", object=0)]
                seconds = launches(len(kernels_us) if kind == "own" else 0)
                second_steps += [Step(kind="take", object=1), *seconds, Step(kind="pass", object=0)]
        first_steps += [Step(kind="wait"), Step(kind="round")]
    threads = tuple(Thread(steps=tuple(steps)) for steps in (first_steps, second_steps) if steps)
    return Program(kernels=kernels(*(tuple(kernels_us) * 2)), threads=threads)


def streams(kernel_us: float, threads: int, wait_every: int) -> Program:
    """Each thread has a stream of its own and waits for that alone."""
    made = tuple(
        Thread(
            steps=(
                Step(kind="launch", object=index, stream=index + 1, count=wait_every),
                Step(kind="wait_stream", stream=index + 1),
                Step(kind="round"),
            )
        )
        for index in range(threads)
    )
    return Program(kernels=kernels(*[kernel_us] * threads), threads=made)
