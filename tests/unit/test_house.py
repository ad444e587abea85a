"""The house is kept: floors, names and rooms of a size that a reader finds his way in. What is wider or longer than
that today stands below with its number, which may fall and never rise; CONTRIBUTING.md says what each rule is for."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent.parent
PRODUCT = ("cuda_hook", "deviceplugin", "edgeshare", "labeller", "sharemgr", "simgpu")
KINDS = (".py", ".c", ".h", ".S", ".def", ".js", ".css", ".html", ".sh")
NO_CODE = (".json", ".md", ".png", ".tpl", ".txt", ".yaml")
GENERATED = ("_pb2.py", "_pb2_grpc.py", "_core.c")

FLOOR_FILES = 15
FILE_LINES = 300
THIN_LINES = 40
FUNCTION_LINES = 60
LEANING = re.compile(
    r'\s*(("""|/\* )(And|Else|Likewise|Nor|One more|Or|So that|The contrary|The same'
    r"|That (a|are|can|is|of (one|the)|pods|was|went|were)|They (are not|may be))|# (And|Else|Likewise|Nor|Or))\b"
)
"""How a docstring, a comment in C or one in Python begins that says nothing without the line above it."""

DANGLING = re.compile(
    r"(Also|Another|Both|He|Its?|Of (these|those)|So (long|many|much|often)|Such|Th(at|e same|eir|en|ere|ese|ey|ose))\b"
)
"""How a docstring of a function or a class begins that does not say of what it is: who looks it up sees no other."""

LONG_FILES = {
    "cuda_hook/driver_api.h": 1387,
    "cuda_hook/src/driver/symbols.def": 397,
    "simgpu/driver/base/symbols.def": 386,
}
POLICIES = {"sharemgr/cluster/lending", "sharemgr/cluster/placement/policies"}
"""Folders that have a module for each policy, however short."""

PARTS = (
    "cuda_hook",
    "deviceplugin",
    "edgeshare/cli",
    "edgeshare",
    "labeller",
    "sharemgr/cluster",
    "sharemgr/node",
    "sharemgr/replay",
    "simgpu/driver",
    "simgpu/machine",
    "simgpu/nvml",
    "simgpu",
)
"""Where a file's name says what is in it without its folder. Of parts within parts the smaller one counts."""

CHART = "deploy/chart/templates"

TABLED = ("cuda_hook/src", "simgpu/driver")
"""Where a README.md says of each folder what is inside."""

DRIVER = "simgpu/driver"
ABOVE_ALL = "ended.c"
"""Of the simulated driver: a context's end, which its lowest folders ask for and which is of all chapters."""


def files(*tops: str) -> Iterator[Path]:
    """What people wrote there, as paths from the root."""
    for top in tops:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in KINDS and not path.name.endswith(GENERATED) and path.name != "__init__.py":
                yield path.relative_to(ROOT)


def templates() -> Iterator[Path]:
    """What the chart is made of."""
    yield from (path.relative_to(ROOT) for path in sorted((ROOT / CHART).rglob("*.*")))


def written(*tops: str) -> Iterator[Path]:
    """What people wrote there that is no code."""
    for top in tops:
        yield from (path.relative_to(ROOT) for path in sorted((ROOT / top).rglob("*.*")) if path.suffix in NO_CODE)


def part_of(path: Path) -> str:
    """The part that a file belongs to."""
    return next(part for part in PARTS if str(path).startswith(f"{part}/"))


def held(found: Mapping[str, int], known: Mapping[str, int], most: int) -> list[str]:
    """What is over its number, and what is known of that need not be any more."""
    over = [(name, count, known.get(name, most)) for name, count in found.items()]
    return [
        *(f"{name}: {count}, at most {number}" for name, count, number in over if count > number),
        *(f"{name}: within {most}, so it is named for nothing" for name in known if found.get(name, 0) <= most),
    ]


def test_floors_are_not_wide() -> None:
    people = (*files(*PRODUCT, "bench", "tests"), *written("deploy", "docs", "tests"))
    floors = Counter(str(path.parent) for path in people)
    assert floors["docs/install"] > 1
    assert held(floors, {}, FLOOR_FILES) == []


def test_files_are_not_long() -> None:
    read = (*files(*PRODUCT, "bench", "tests"), *templates())
    lines = {str(path): len((ROOT / path).read_text().splitlines()) for path in read}
    assert held(lines, LONG_FILES, FILE_LINES) == []


def functions_of_c(text: str) -> Iterator[tuple[int, int]]:
    """The first and the last line of each function of a file of C, as clang-format leaves it: what begins at the margin
    and opens a brace, and ends with a brace alone."""
    margin = begin = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if begin:
            if line == "}":
                yield begin, number
            begin = 0 if line.startswith("}") else begin
            continue
        if re.match(r"\w", line):
            margin = number
        if line.endswith("{") and not line.startswith("#"):
            begin = margin


def functions(path: Path) -> Iterator[tuple[int, int]]:
    """The first and the last line of each function of a file."""
    text = (ROOT / path).read_text()
    if path.suffix in (".c", ".h"):
        yield from functions_of_c(text)
    elif path.suffix == ".py":
        yield from functions_of_python(ast.parse(text).body)


def functions_of_python(statements: Iterable[ast.AST]) -> Iterator[tuple[int, int]]:
    """The same of Python: what stands in an expression is none."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.lineno, statement.end_lineno or 0
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(statement, field, ())
            yield from functions_of_python(below if isinstance(below, list) else ())


def test_functions_are_not_long() -> None:
    found = [
        (path, begin, end) for path in files(*PRODUCT, "bench", "tests", "tools") for begin, end in functions(path)
    ]
    assert min(sum(path.suffix == suffix for path, _, _ in found) for suffix in (".py", ".c")) > 2000
    assert [f"{path}:{begin}" for path, begin, end in found if end - begin >= FUNCTION_LINES] == []


def test_the_functions_of_a_file_of_c_are_seen() -> None:
    lines = [
        "struct pair {",
        "    int a;",
        "};",
        "static const int NONE[] = {",
        "    0,",
        "};",
        "CALLED(macro)",
        "static int sum(const struct pair *pair,",
        "               int more) {",
        "    if (more) {",
        "        return 1;",
        "    }",
        "    return 0;",
        "}",
        "static int one(void) { return 1; }",
        "int two(void) {",
        "    return 2;",
        "}",
    ]
    assert list(functions_of_c("\n".join(lines))) == [(8, 14), (16, 18)]


def test_no_docstring_or_comment_needs_the_line_before() -> None:
    assert [
        f"{path}:{number}: {line.strip()}"
        for path in files(*PRODUCT, "bench", "tools")
        for number, line in enumerate((ROOT / path).read_text().splitlines(), start=1)
        if LEANING.match(line)
    ] == []


def described(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of the functions and classes of a file of Python, with their lines."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, ast.get_docstring(node) or ""


def test_a_docstring_says_of_what_it_is() -> None:
    assert [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path in files(*PRODUCT, "bench", "tools")
        if path.suffix == ".py"
        for line, text in described(path)
        if DANGLING.match(text)
    ] == []


def test_every_package_says_what_is_inside() -> None:
    packages = [path for top in (*PRODUCT, "bench", "tests/kit", "tools") for path in (ROOT / top).rglob("__init__.py")]
    assert len(packages) > 80
    assert [
        str(path.relative_to(ROOT)) for path in packages if not ast.get_docstring(ast.parse(path.read_text()))
    ] == []


def test_no_file_name_is_there_twice_in_one_part() -> None:
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in files(*PRODUCT):
        names[part_of(path), path.name].append(str(path))
    for path in templates():
        names[CHART, path.name].append(str(path))
    assert [paths for paths in names.values() if len(paths) > 1] == []


@pytest.mark.parametrize("part", TABLED)
def test_a_table_has_every_folder_and_where_to_begin(part: str) -> None:
    table = (ROOT / part / "README.md").read_text()
    begins = dict(re.findall(r"^\| `(\w+)` \|.+\| `([\w.]+)` \|$", table, re.MULTILINE))
    assert sorted(begins) == sorted(
        {path.relative_to(part).parts[0] for path in files(part) if path.parent != Path(part)}
    )
    assert [
        f"{folder}/{first}" for folder, first in begins.items() if not (ROOT / part / folder / first).exists()
    ] == []


def chapters() -> dict[str, set[str]]:
    """The folders of the simulated driver from the bottom up, each with those that it may use, as its table has it."""
    table = (ROOT / DRIVER / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \| `[\w.]+` \|$", table, re.MULTILINE)
    return {folder: set(re.findall(r"`(\w+)`", uses)) for folder, uses in rows}


def test_a_chapter_of_the_simulated_driver_includes_what_its_table_says_and_none_above_it() -> None:
    told = chapters()
    included = {
        folder: {
            other
            for path in (ROOT / DRIVER / folder).glob("*.[ch]")
            for other in re.findall(r'#include "driver/(\w+)/', path.read_text())
        }
        - {folder}
        for folder in told
    }
    assert included == told
    below = list(told)
    assert [(one, two) for place, one in enumerate(below) for two in told[one] if two not in below[:place]] == []


def test_a_header_of_the_simulated_driver_declares_what_its_own_chapter_defines() -> None:
    declared, elsewhere = 0, set()
    for folder in chapters():
        texts = {path: path.read_text() for path in (ROOT / DRIVER / folder).glob("*.[ch]")}
        defined = {
            name for text in texts.values() for name in re.findall(r"^\w.*?\b(\w+)\([^;]*?\) \{", text, re.MULTILINE)
        }
        # What is exported is declared by CUDA's headers, of which entries.h is a part.
        names = {
            name
            for path, text in texts.items()
            if path.suffix == ".h" and path.name != "entries.h"
            for name in re.findall(r"^\w[\w *]*?\b(\w+)\([^;{]*\);", text, re.MULTILINE)
        }
        declared += len(names)
        elsewhere |= names - defined
    assert declared > 140
    assert elsewhere == set(re.findall(r"^\w+ (\w+)\(", (ROOT / DRIVER / ABOVE_ALL).read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """The product's imports."""
    return grimp.build_graph(*PRODUCT, cache_dir=None)


def test_no_module_is_thin(graph: grimp.ImportGraph) -> None:
    thin = set()
    for path in files(*PRODUCT):
        module = str(path.with_suffix("")).replace("/", ".")
        if path.suffix != ".py" or str(path.parent) in POLICIES or module not in graph.modules:
            continue
        importers = graph.find_modules_that_directly_import(module)
        if len(importers) == 1 and len((ROOT / path).read_text().splitlines()) < THIN_LINES:
            thin.add(module)
    assert thin == set()
