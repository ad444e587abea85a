"""Programs whose streams run beside each other on a GPU that can: rows of figures, and how each is measured."""

from collections import Counter
from collections.abc import Callable, Mapping

from bench.figures import longest_gap_ns
from edgeshare.contract.units import MIB, NS_PER_MS
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Program, Step, Thread
from tests.kit.virtual.cases.oracles import bare
from tests.kit.virtual.cases.paces import PACES
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.figures.bound import longest_wait_ns

Run = Callable[[Case], Report]


def _program(kernels_us: tuple[float, ...], *threads: tuple[Step, ...]) -> Program:
    """Each thread runs its steps again and again; a copy's buffer is had once."""
    made = []
    for steps in threads:
        begin = tuple(
            Step(kind="alloc", object=step.object, amount=step.amount) for step in steps if step.kind == "fetch"
        )
        made.append(Thread(steps=(*begin, *steps, Step(kind="round")), again=len(begin)))
    return Program(kernels=step_programs.kernels(*kernels_us), threads=tuple(made))


def _launch(kernel: int, stream: int) -> Step:
    return Step(kind="launch", object=kernel, stream=stream)


def _fetch(mib: int, stream: int) -> Step:
    return Step(kind="fetch", object=stream, stream=stream, amount=mib * MIB)


def _wait(stream: int) -> Step:
    return Step(kind="wait_stream", stream=stream)


def _of_one_thread(kernel_us: float) -> Program:
    return _program((kernel_us,), (*(_launch(0, stream) for stream in range(1, 5)), Step(kind="wait")))


PROGRAMS: Mapping[str, Program] = {
    "copies of 12 MiB beside kernels of 1 ms, each waited for": _program(
        (1000,), (_launch(0, 1), _wait(1)), (_fetch(12, 2), _wait(2))
    ),
    "copies of 1 MiB beside kernels of 5 ms, each waited for": _program(
        (5000,), (_launch(0, 1), _wait(1)), (_fetch(1, 2), _wait(2))
    ),
    "kernels of 100 us beside kernels of 5 ms, each waited for": _program(
        (5000, 100), (_launch(0, 1), _wait(1)), (_launch(1, 2), _wait(2))
    ),
    "kernels of 1 ms in two streams of two threads": _program((1000, 1000), (_launch(0, 1),), (_launch(1, 2),)),
    "four streams of one thread, 1 ms": _of_one_thread(1000),
    "four streams of one thread, 5 ms": _of_one_thread(5000),
}

BESIDE = ("alone", "beside a rival")
ROWS = {
    f"{name}, {beside}, {pace}": (program, beside, pace)
    for pace in PACES
    for name, program in PROGRAMS.items()
    for beside in BESIDE
}

RIVALS = {row: of for row, of in ROWS.items() if of[1] != "alone"}


def _case(row: str, seed: int, **more: object) -> Case:
    program, beside, pace = ROWS[row]
    clients = [Client(program=program, percent=50)]
    if beside != "alone":
        clients.append(Client(program=step_programs.burn(1000), percent=50))
    settings = {"seed": seed, "noise": 2, "pace": pace, "overlap": True, "intervals": True} | more
    return Case(clients=tuple(clients), **settings)  # type: ignore[arg-type]


def done(report: Report) -> dict[str, float]:
    """Of each kind of work, how much of the first client's was done in the measured time, of that time: each piece by
    itself, whatever ran beside it."""
    begin_ns, end_ns = int(report.steps[0]["now_ns"]), int(report.steps[-1]["now_ns"])
    by_kind: Counter[str] = Counter()
    for interval, work in zip(report.intervals, report.works, strict=True):
        if interval.name == "c0":
            by_kind[work.kind] += max(0, min(interval.end_ns, end_ns) - max(interval.begin_ns, begin_ns))
    return {kind: ns / report.measured_ns for kind, ns in by_kind.items()}


def lost_percent(run: Run, row: str, seed: int) -> float:
    """What is missing of what is due: of the work of each kind that the program does bare, alone all of it, else its
    percent."""
    case = _case(row, seed)
    part = 1.0 if len(case.clients) == 1 else case.clients[0].percent / 100
    could, did = done(run(bare(case, 0))), done(run(case))
    return 100 * max(0.0, *(1 - did.get(kind, 0.0) / (part * could[kind]) for kind in could))


def gpu_time_error_percent(run: Run, row: str, seed: int) -> float:
    """How far what is told of the first client's GPU time is from the time in which any of its work ran. In all less
    than a window: what is told is of all that was executed."""
    return abs(run(_case(row, seed, intervals=False, measure_ms=8000)).gpu_error_percent("c0"))


def rivals_wait(run: Run, row: str, seed: int) -> float:
    """The rival's longest wait from the start on, as a part of the rule's bound."""
    program, _, pace = ROWS[row]
    report = run(_case(row, seed, settle_ms=1))
    begin_ns, end_ns = int(report.steps[0]["now_ns"]), int(report.steps[-1]["now_ns"])
    begin_ns += JOINED_MS * NS_PER_MS
    kernel_ns = max(kernel.duration_ns for kernel in program.kernels)
    return longest_gap_ns(report.intervals, "c1", begin_ns, end_ns) / longest_wait_ns(kernel_ns, 50, pace)


JOINED_MS = 20
"""By then both clients have work."""
