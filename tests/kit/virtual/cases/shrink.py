"""From a case that fails to a smaller one that fails alike. Pure but for the oracle that it is given."""

from collections.abc import Callable, Iterator

from pydantic import ValidationError

from tests.kit.virtual.cases.case import Case, Client, Program, Step, Thread

TRIES_MOST = 400
"""Runs of the oracle that shrinking may take: some two minutes."""


def shrink(case: Case, fails: Callable[[Case], bool], tell: Callable[[Case], None] = lambda case: None) -> Case:
    """Takes away whatever can go while the case still fails; each smaller case is told."""
    tries = 0
    smaller = True
    while smaller and tries < TRIES_MOST:
        smaller = False
        for candidate in _smaller(case):
            tries += 1
            if fails(candidate):
                case, smaller = candidate, True
                tell(case)
                break
            if tries == TRIES_MOST:
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Smaller cases, those that take away most first."""
    for changes in _changes(case):
        try:
            # model_copy checks nothing, and not everything that can be taken away leaves a case.
            yield Case.model_validate(case.model_copy(update=changes).model_dump())
        except ValidationError:
            continue


def _changes(case: Case) -> Iterator[dict[str, object]]:
    clients = case.clients
    if len(clients) > 1 and not case.faults:
        for index in range(len(clients)):
            yield {"clients": clients[:index] + clients[index + 1 :]}
    for noise in range(case.noise):
        yield {"noise": noise}
    if case.pace != "plain":
        yield {"pace": "plain"}
    if case.scheduling != "fifo":
        yield {"scheduling": "fifo"}
    if case.measure_ms > 500:
        yield {"measure_ms": case.measure_ms // 2}
    for index, client in enumerate(clients):
        for program in _smaller_programs(client.program):
            yield {"clients": (*clients[:index], _with(client, program), *clients[index + 1 :])}
    if case.noise == 2:
        for most in _fewer(min(case.delays_most, 1 << 16)):
            yield {"delays_most": most}


def _fewer(number: int) -> Iterator[int]:
    yield from dict.fromkeys((0, number // 2, number - 1)) if number > 0 else ()


def _with(client: Client, program: Program) -> Client:
    return client.model_copy(update={"program": program})


def _smaller_programs(program: Program) -> Iterator[Program]:
    threads = program.threads
    if len(threads) > 1:
        for index in range(len(threads)):
            yield program.model_copy(update={"threads": threads[:index] + threads[index + 1 :]})
    for index, thread in enumerate(threads):
        for smaller in _smaller_threads(thread):
            yield program.model_copy(update={"threads": (*threads[:index], smaller, *threads[index + 1 :])})


def _smaller_threads(thread: Thread) -> Iterator[Thread]:
    steps = thread.steps
    for index in range(len(steps) if len(steps) > 1 else 0):
        again = thread.again - (index < thread.again)
        yield Thread(steps=steps[:index] + steps[index + 1 :], again=again)
    for index, step in enumerate(steps):
        for smaller in _smaller_steps(step):
            yield thread.model_copy(update={"steps": (*steps[:index], smaller, *steps[index + 1 :])})


def _smaller_steps(step: Step) -> Iterator[Step]:
    if step.count > 1:
        yield step.model_copy(update={"count": step.count // 2})
    if step.amount > 1 and step.kind in ("think", "compute", "alloc", "alloc_async"):
        yield step.model_copy(update={"amount": step.amount // 2})
    if step.stream:
        yield step.model_copy(update={"stream": 0})
