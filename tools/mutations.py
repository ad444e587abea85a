"""Which test goes red where the product is wrong: changes that each break a promise of it, made in copies of the tree.

Each is made in a copy of its own, built there, and the tests that it names are run until the first that fails. Before
them all these tests run in a copy as it is, where none may fail.

Usage: tools/mutations.py [NAME...]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from built import MADE, found

ROOT = Path(__file__).parent.parent
REPORT = "build/junit/mutations.xml"
BUILDS = (".", "simgpu")
COMPILED = ("*__mypyc.*.so", "sharemgr/**/*.so")
TAIL = 4000
"""Characters of what a build or the tests said that are shown where they broke off."""


@dataclass(frozen=True)
class Mutation:
    """A change of one place, and the tests that are asked about it."""

    name: str
    what: str
    """What the product does then."""
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]


SHARES = "tests/virtual/test_exact_shares.py"
BOOKS = "tests/virtual/test_memory_books.py"
TURNS = "tests/virtual/test_turns.py"

MUTATIONS = (
    Mutation(
        "share",
        "who requests half of a GPU, or more, is charged 8 % less, and gets two points more",
        "sharemgr/node/turns/policy.py",
        "virtual = held_ns * 100 // percent\n",
        "virtual = held_ns * (92 if percent >= 50 else 100) // percent\n",
        (SHARES,),
    ),
    Mutation(
        "limit",
        "a limit charges 5 % less than was used",
        "sharemgr/node/turns/share/limit.py",
        "standing.tat_ns += gpu_ns * 100 // standing.limit_percent",
        "standing.tat_ns += gpu_ns * 95 // standing.limit_percent",
        (SHARES,),
    ),
    Mutation(
        "wake",
        "who waits for queued work to end is not woken when it has",
        "cuda_hook/src/markers/collect.c",
        "        if (__atomic_load_n(&es_backlog.waiters, __ATOMIC_RELAXED) != 0)\n            es_progress_wake();\n",
        "",
        (TURNS,),
    ),
    Mutation(
        "free",
        "memory that is given back is taken off the ledger twice",
        "cuda_hook/src/memory/account.c",
        "    else\n        es_amounts_unuse((CUdevice)block.device, block.bytes);\n",
        "    else\n        for (int twice = 0; twice < 2; twice++)\n"
        "            es_amounts_unuse((CUdevice)block.device, block.bytes);\n",
        (BOOKS,),
    ),
    Mutation(
        "early",
        "a slice is given back while 1 ms of it is still queued",
        "cuda_hook/src/pass/drain.c",
        "drained = all && es_submitted_drained();",
        "drained = all && (es_submitted_drained() || es_queued_ns(es_now_ns()) <= ES_MS);",
        (SHARES,),
    ),
    Mutation(
        "batch",
        "a batch of 7 launches, of 27, of 47, … is never closed",
        "cuda_hook/src/markers/batches.c",
        "if (slot->marking || slot->batch.opened_ns == 0 || es_closed_full()) {",
        "if (slot->marking || slot->batch.opened_ns == 0 || es_closed_full() || closing->launches % 20 == 7) {",
        (SHARES,),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """Of one run of tests."""

    red: str | None
    """The first test that failed, as pytest names it; None: none did."""
    why: str
    seconds: float
    """From pytest's start to its end."""
    processor_s: float


def apply(tree: Path, mutation: Mutation) -> None:
    """Changes the tree. Ends with a line where what is to be replaced is not there exactly once."""
    path = tree / mutation.file
    text = path.read_text()
    count = text.count(mutation.text)
    if count != 1:
        sys.exit(
            f"{mutation.file}: what the mutation {mutation.name} replaces is there {count} times and not once: write it"
            f" anew in tools/mutations.py"
        )
    path.write_text(text.replace(mutation.text, mutation.instead))


@contextmanager
def copied(tree: Path) -> Iterator[Path]:
    """A copy of what git knows of or could know of, and of what was built of it, as old as it is."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.split("\0") if name and (tree / name).exists()]
    with tempfile.TemporaryDirectory(prefix="mutated-") as folder:
        copy = Path(folder)
        for name in (*names, *found(tree, MADE)):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, copy / name, follow_symlinks=False)
        yield copy


def done(tree: Path, *words: str, folder: str = ".") -> subprocess.CompletedProcess[str]:
    """A Python of the tree's own modules, whichever tree is installed."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=tree / folder, env=environment, check=False, capture_output=True, text=True)


def build(tree: Path, mutation: Mutation) -> None:
    """Builds anew what the change is newer than. Of what is written in Python nothing is: interpreted it does the same,
    and to compile it takes longer than the tests."""
    if mutation.file.endswith(".py"):
        for name in found(tree, COMPILED):
            (tree / name).unlink()
        return
    for folder in BUILDS:
        built = done(tree, "setup.py", "-q", "build_ext", "--inplace", folder=folder)
        if built.returncode != 0:
            sys.exit(f"{(built.stdout + built.stderr)[-TAIL:]}\n{tree / folder} cannot be built")


def first_red(report: Path) -> tuple[str | None, str]:
    """The first test of a report that failed, and what it said."""
    for case in ET.parse(report).getroot().iter("testcase"):
        for kind in ("failure", "error"):
            failed = case.find(kind)
            if failed is not None:
                path = case.get("classname", "").replace(".", "/")
                return f"{path}.py::{case.get('name')}", failed.get("message", "").splitlines()[0]
    return None, ""


def run(tree: Path, tests: Iterable[str]) -> Outcome:
    """Has the tests of `make check` that are among these run in a tree, until one fails."""
    words = ("-m", "pytest", "-q", "-x", "-m", "not whole", "-p", "no:cacheprovider", f"--junit-xml={REPORT}")
    begun, before = time.monotonic(), os.times()
    told = done(tree, *words, *tests)
    seconds, after = time.monotonic() - begun, os.times()
    if told.returncode not in (0, 1):
        sys.exit(f"{(told.stdout + told.stderr)[-TAIL:]}\npytest ended with status {told.returncode}")
    red, why = first_red(tree / REPORT)
    processor_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Outcome(red, why, seconds, processor_s)


def row(what: str, red: str, outcome: Outcome) -> str:
    """A line of the table."""
    return f"| {what} | {red} | {outcome.seconds:.0f} | {outcome.processor_s:.0f} |"


def chosen(names: Sequence[str]) -> tuple[Mutation, ...]:
    """The mutations of these names; all where no name is given."""
    known = {mutation.name: mutation for mutation in MUTATIONS}
    for name in names:
        if name not in known:
            sys.exit(f"there is no mutation {name!r}: choose of {', '.join(known)}")
    return tuple(known[name] for name in names) or MUTATIONS


def main(names: Sequence[str]) -> int:
    """Prints the table; fails where a change is not seen."""
    mutations = chosen(names)
    print("| the product changed so that | red | s | s of a processor |\n|---|---|---|---|", flush=True)
    with copied(ROOT) as tree:
        for mutation in mutations:
            apply(tree, mutation)
    with copied(ROOT) as tree:
        outcome = run(tree, dict.fromkeys(test for mutation in mutations for test in mutation.tests))
        if outcome.red is not None:
            sys.exit(f"{outcome.red} fails where nothing was changed: {outcome.why}")
        print(row("nothing", "none", outcome), flush=True)
    unseen = 0
    for mutation in mutations:
        with copied(ROOT) as tree:
            apply(tree, mutation)
            build(tree, mutation)
            outcome = run(tree, mutation.tests)
        unseen += outcome.red is None
        print(row(mutation.what, f"`{outcome.red}`" if outcome.red else "**none**", outcome), flush=True)
        print(f"{mutation.name}: {outcome.why or 'no test failed'}", file=sys.stderr, flush=True)
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
