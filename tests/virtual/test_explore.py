"""Random programs, alone and beside rivals, each against the same one bare."""

from collections.abc import Callable, Iterable, Mapping

import pytest

from tests.kit.virtual.cases.case import Case
from tests.kit.virtual.cases.explore import owed, seeds
from tests.kit.virtual.cases.oracles import FALLS_SHORT, MORE_GPU_TIME, Flaw, flaws
from tests.kit.virtual.cases.random_case import VARIANTS, random_case
from tests.kit.virtual.cases.tally import SHORT, most_short, note
from tests.kit.virtual.figures.ratchet import shortfalls, told_too_much
from tests.kit.virtual.world import World

CHUNK = 10
STRETCH = 94
"""Of the further cases, which are counted together."""
KNOWN = shortfalls()
"""What falls short today: each case may lose a flaw, none may get one."""

NEAR = 6
"""So many more programs may be told too much: which of those near 2 % are changes with where memory lies."""

QUICK, USUAL, SOAK = 60, 600, 10_000
"""Cases of `make check`, `make test` and `make soak`."""

VARIED = 10
"""One of so many is run otherwise, too."""

CASES: Mapping[str, Callable[[int], Case]] = {"": random_case, **VARIANTS}
"""By how they are run: as they are, or otherwise."""
Note = Callable[[Mapping[str, str]], list[dict[str, str]] | None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        part = VARIED if "variant" in metafunc.fixturenames else 1
        metafunc.parametrize(
            "first",
            [
                pytest.param(n, marks=() if n < QUICK // part else pytest.mark.whole)
                for n in range(0, USUAL // part, CHUNK)
            ],
        )
    if "further" in metafunc.fixturenames:
        ends = {how: (USUAL // VARIED, SOAK // VARIED) if how else (USUAL, SOAK) for how in CASES}
        firsts = [(how, first) for how, (begin, end) in ends.items() for first in range(begin, end, STRETCH)]
        metafunc.parametrize(("how", "further"), firsts, ids=[named(first, how) for how, first in firsts])


@pytest.fixture
def noted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Note:
    """Notes what a test found. Returns what each did that runs the same function, where it is the last of them."""
    same = [each.nodeid for each in request.session.items if getattr(each, "function", None) is request.function]
    folder = tmp_path_factory.getbasetemp()
    # What the workers of one run have in common.
    folder = (folder.parent if hasattr(request.config, "workerinput") else folder) / request.function.__name__
    folder.mkdir(exist_ok=True)
    files = [folder / f"{index}.json" for index in range(len(same))]
    return lambda found: note(files, same.index(request.node.nodeid), found)


def named(number: int, how: str = "") -> str:
    """A random case's name: its number, and how it is run otherwise."""
    return f"{number}, {how}" if how else str(number)


def told(case: Case, found: Iterable[Flaw]) -> str:
    """What did not hold of a case, and how to see it again."""
    what = "; ".join(flaw.what for flaw in found)
    return f"{what}: python -m tests.kit.virtual.cases.explore --shrink --replay '{case.line()}'"


def those_with(found: Mapping[str, tuple[Case, list[Flaw]]], matters: Callable[[str, str], bool]) -> dict[str, str]:
    """Cases with a flaw of a kind that matters of them, each with that."""
    those = {
        name: (case, [flaw for flaw in owed(each) if matters(name, flaw.kind)]) for name, (case, each) in found.items()
    }
    return {name: told(case, each) for name, (case, each) in those.items() if each}


def is_new(name: str, kind: str) -> bool:
    """Whether a case was not known to have such a flaw."""
    return kind not in KNOWN.get(name, ())


def run_all(world: World, cases: Mapping[str, Case]) -> dict[str, tuple[Case, list[Flaw]]]:
    """Each with its flaws."""
    return {name: (case, flaws(case, world.run)) for name, case in cases.items()}


def test_no_random_program_falls_short(world: World, noted: Note, first: int) -> None:
    found = run_all(world, {named(number): random_case(number) for number in range(first, first + CHUNK)})
    more = {name: flaw.what for name, (_, each) in found.items() for flaw in each if flaw.kind == MORE_GPU_TIME}
    everywhere = noted(more)
    wrong = [*those_with(found, is_new).values()]
    if everywhere is not None and len(everywhere) * CHUNK == USUAL:
        lines = [f"{name}: {what}" for each in everywhere for name, what in each.items()]
        if len(lines) > told_too_much() + NEAR:
            wrong += [f"{len(lines)} programs of all are told too much, {told_too_much()} were:", *lines]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_random_program_falls_short_where_it_is_run_otherwise(world: World, first: int, variant: str) -> None:
    numbers = range(first, first + CHUNK)
    new = those_with(run_all(world, {named(n, variant): VARIANTS[variant](n) for n in numbers}), is_new)
    assert not new, "\n".join(new.values())


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_of_further_random_programs_no_larger_part_falls_short(
    world: World, noted: Note, record_property: Callable[[str, object], None], how: str, further: int
) -> None:
    numbers = range(further, further + STRETCH)
    found = run_all(world, {named(number, how): CASES[how](number) for number in numbers})
    short = those_with(found, lambda name, kind: kind in FALLS_SHORT)
    for name, line in short.items():
        record_property(SHORT, f"{name}: {line}")
    everywhere = noted(short)
    worse = those_with(found, lambda name, kind: kind not in FALLS_SHORT)
    assert not worse, "\n".join(worse.values())
    if everywhere is not None:
        of_known = USUAL + len(VARIANTS) * USUAL // VARIED
        most = most_short(len(KNOWN), of_known, STRETCH * len(everywhere))
        names = [name for each in everywhere for name in each]
        assert len(names) <= most, f"of {STRETCH * len(everywhere)} programs, at most {most}: {'; '.join(names)}"


@pytest.mark.parametrize("number", range(len(seeds())))
def test_what_failed_once_does_so_no_more(world: World, number: int) -> None:
    case = seeds()[number]
    found = owed(flaws(case, world.run))
    assert not found, told(case, found)
