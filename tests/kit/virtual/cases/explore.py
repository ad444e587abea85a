"""``python -m tests.kit.virtual.cases.explore``: runs random programs on the virtual clock, and shrinks what fails.

Each case that fails is printed as one line, which ``--replay`` takes.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from tests.kit.virtual.cases.case import Case, read_case
from tests.kit.virtual.cases.oracles import MORE_GPU_TIME, Flaw, flaws
from tests.kit.virtual.cases.random_case import random_case
from tests.kit.virtual.cases.shrink import shrink
from tests.kit.virtual.command import Command
from tests.kit.virtual.world import HOOK
from tests.kit.virtual.worlds import Worlds

SEEDS = Path(__file__).with_name("seeds.txt")

FIRST, COUNT = click.IntRange(0, 1 << 62), click.IntRange(1, 1_000_000)
"""A case's number is its seed, which is below 2^63."""


def seeds() -> list[Case]:
    """The cases that failed once. Raises InvalidRequest."""
    lines = SEEDS.read_text(encoding="utf-8").splitlines()
    return [read_case(line) for line in lines if line and not line.startswith("#")]


def owed(found: Iterable[Flaw]) -> list[Flaw]:
    """Without what is asked of all programs together, and of none by itself yet: that no more GPU time is told of short
    kernels and of several threads than what was executed."""
    return [flaw for flaw in found if flaw.kind != MORE_GPU_TIME]


@click.command(cls=Command)
@click.option("--first", type=FIRST, default=0, show_default=True, help="Number of the first random case.")
@click.option("--count", type=COUNT, default=60, show_default=True, help="How many random cases.")
@click.option(
    "--replay", metavar="LINE", help="Instead of random ones this case, as a failure printed it; -: from stdin."
)
@click.option("--seeds", "known", is_flag=True, help="Instead of random ones those that failed once.")
@click.option("--shrink", "smaller", is_flag=True, help="Makes each case that fails as small as it can.")
@click.option("--json", "as_json", is_flag=True, help="Each case with its flaws as one line of JSON.")
@click.option("--hook", type=click.Path(path_type=Path, exists=True), default=HOOK, help="Another build of the hook.")
def main(first: int, count: int, replay: str | None, known: bool, smaller: bool, as_json: bool, hook: Path) -> None:
    """Runs programs on the virtual clock, each also bare, and says what did not hold."""
    if replay is not None:
        cases = [read_case(sys.stdin.read() if replay == "-" else replay)]
    else:
        cases = seeds() if known else [random_case(number) for number in range(first, first + count)]
    console = Console(stderr=True)
    failed = 0
    worlds = Worlds(hook.resolve())
    results = worlds.map(lambda world, case: flaws(case, world.run), cases)
    shown = track(results, total=len(cases), console=console, disable=not console.is_terminal)
    for case, found in zip(cases, shown, strict=True):
        failed += bool(owed(found))
        if as_json:
            click.echo(json.dumps({"flaws": [vars(flaw) for flaw in found], "case": json.loads(case.line())}))
        elif owed(found):
            told = shrunk(case, owed(found), worlds) if smaller else case
            click.echo(f"{'; '.join(flaw.what for flaw in owed(found))}\n--replay '{told.line()}'")
    worlds.close()
    console.print(f"{len(cases)} cases, {failed} with flaws")
    if failed:
        sys.exit(1)


def shrunk(case: Case, found: list[Flaw], worlds: Worlds) -> Case:
    """A smaller case that has a flaw of the same kind."""
    kinds = {flaw.kind for flaw in found}

    def fails(candidate: Case) -> bool:
        (again,) = worlds.map(lambda world, of: owed(flaws(of, world.run)), [candidate])
        return any(flaw.kind in kinds for flaw in again)

    return shrink(case, fails)


if __name__ == "__main__":
    main()
