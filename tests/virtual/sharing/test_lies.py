"""No lie pays: one that saturates the device, and whose pages say something else than what it used, has no more of it
than one that says how it is; and it is the liar's loss alone, not that of those beside it."""

from collections.abc import Callable
from functools import cache
from statistics import mean

import pytest

from tests.kit.virtual.cases.case import Case, Client
from tests.kit.virtual.cases.lies import LIES
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.cases.step_programs import burn, think
from tests.kit.virtual.world import World

GAIN = 1.05
"""What a liar may have, as a part of what it would have."""
KEEPS = 0.95
"""What those beside it have at least, likewise."""
SEEDS = (1, 2, 3)
"""What one has without a lie, too, differs by 2 % from one to the other."""
RUN_MS = 40_000
"""A liar is doubted within two seconds and for thirty, lies again, is found again, and has paid for it by then."""

LIGHT, BURNS = think(20, 8, 400), burn(1000)
PLACES = {
    "beside a light one": ((80, burn(300)), (20, LIGHT)),
    "beside one that burns": ((50, BURNS), (50, BURNS)),
    "beside both": ((40, burn(300)), (20, LIGHT), (40, BURNS)),
    "with a tenth, beside both": ((10, burn(300)), (20, LIGHT), (70, BURNS)),
}
"""The liar's percent and program, and the others'."""


def run(world: World, place: str, *lies: str | None, named: bool = True, seed: int = SEEDS[0]) -> Report:
    """Who comes first says these things, and the others the truth."""
    programs = PLACES[place]
    clients = tuple(
        Client(program=program, percent=percent, lie=lie)
        for (percent, program), lie in zip(programs, [*lies, *[None] * (len(programs) - len(lies))], strict=True)
    )
    case = Case(clients=clients, settle_ms=1000, measure_ms=RUN_MS, step_ms=1000, scheduling="timeslice", named=named)
    return world.run(case.model_copy(update={"seed": seed}))


def parts(report: Report, honest: Report) -> list[float]:
    """What each has, of what it has where nobody lies."""
    return [report.busy_percent(name) / honest.busy_percent(name) for name in report.case.names]


Honest = Callable[..., Report]

CASES = [
    pytest.param(place, lie, marks=[] if place == "beside both" or lie in ("a twentieth", "half") else pytest.mark.soak)
    for place in PLACES
    for lie in LIES
]


@pytest.fixture(scope="module")
def honest(world: World) -> Honest:
    """What there is in a place where nobody lies; nobody is accused there."""

    @cache
    def found(place: str, seed: int = SEEDS[0]) -> Report:
        report = run(world, place, seed=seed)
        assert not any(report.offences(name) for name in report.case.names)
        return report

    return found


@pytest.mark.parametrize(("place", "lie"), CASES)
def test_no_lie_pays_and_it_is_the_liars_alone(world: World, honest: Honest, place: str, lie: str) -> None:
    gains = []
    for seed in SEEDS:
        report = run(world, place, lie, seed=seed)
        liar, *others = parts(report, honest(place, seed))
        gains.append(liar)
        assert min(others) >= KEEPS
        # The first time may have been before the measured time.
        offences = report.steps[-1]["offences"]
        accused, *unblamed = (offences[name] for name in report.case.names)
        assert accused.get("false-reports", 0) <= 3
        assert set(accused) & {"false-reports", "false-counters"}
        assert not any(unblamed)
    assert mean(gains) <= GAIN


@pytest.mark.parametrize("lie", ["a twentieth", "half"])
def test_two_that_lie_together_gain_nothing(world: World, honest: Honest, lie: str) -> None:
    report = run(world, "beside both", lie, None, lie)
    one, light, other = parts(report, honest("beside both"))
    assert (one + other) / 2 <= GAIN
    assert light >= KEEPS
    assert not report.offences("c1")


@pytest.mark.parametrize("lie", ["a twentieth", "goes back"])
def test_where_nobody_knows_whose_the_lie_is_all_take_turns(world: World, honest: Honest, lie: str) -> None:
    """So that the light one has less: it is what singling out the liar spares it."""
    place = "beside a light one"
    report = run(world, place, lie, named=False)
    _, light = parts(report, honest(place))
    assert light < 0.8
    assert "false-reports" not in report.offences("c0")


def test_a_lie_is_the_same_each_time(world: World) -> None:
    first, second = (run(world, "beside both", "half") for _ in range(2))
    assert first.steps == second.steps
