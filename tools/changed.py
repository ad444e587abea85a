"""Which tests a change asks for: prints them for pytest, and why on standard error.

A test file is chosen where it, the kit or the project imports what was changed, or where RUNS says that its
folder runs it without importing it. Usage: tools/changed.py BASE
"""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PACKAGES = ("edgeshare", "cuda_hook", "sharemgr", "deviceplugin", "labeller", "simgpu", "bench")

NODE = ("tests/node", "tests/demo", "tests/tpu")
DRIVEN = ("tests/simgpu", "tests/hook", *NODE, "tests/kubelet", "tests/labeller", "tests/cluster")
EVERYTHING = tuple(
    sorted(
        f"tests/{each.name}"
        for each in (ROOT / "tests").iterdir()
        if each.name != "gpu" and any(each.rglob("test_*.py"))
    )
)

FILES = {
    "tests/conftest.py": EVERYTHING,
    "pyproject.toml": EVERYTHING,
    "requirements": EVERYTHING,
    "setup.py": EVERYTHING,
    "cuda_hook/": ("tests/hook", "tests/simgpu/test_headers.py", "tests/unit", *NODE, "tests/cluster"),
    "simgpu/": DRIVEN,
    "bench/": ("tests/demo", "tests/node/test_threads.py"),
    "deploy/chart/files/dashboard.json": ("tests/deploy", "tests/assigner/test_dashboard.py"),
    "deploy/": ("tests/deploy", "tests/cluster"),
    "Dockerfile": ("tests/cluster",),
    "MANIFEST.in": ("tests/cluster",),
    "tools/release/": ("tests/deploy/release", "tests/cluster/image"),
    "edgeshare/shown/browser/": ("tests/web", "tests/assigner/status"),
    "docs/": ("tests/deploy", "tests/hook/names/test_every_name.py", "tests/unit/test_documents.py"),
}
"""Who uses what is no Python: where a changed file's path begins so, the first that fits."""

COMMAND = "edgeshare.cli"
MANAGER = (COMMAND, f"{COMMAND}.sharemgr", "sharemgr.node")
DAEMONS = (*MANAGER, f"{COMMAND}.deviceplugin", "deviceplugin")
SHOWN = (f"{COMMAND}.status", f"{COMMAND}.top", "edgeshare.shown")
RUNS = {
    "tests/assigner": (COMMAND, f"{COMMAND}.sharemgr", "sharemgr.cluster", *SHOWN),
    "tests/assigner/status": (f"{COMMAND}.run", "sharemgr.node"),
    "tests/assigner/test_dashboard.py": (*DAEMONS, f"{COMMAND}.run"),
    "tests/cluster": ("edgeshare", "cuda_hook", "sharemgr", "deviceplugin", "labeller", "simgpu"),
    "tests/demo": (*MANAGER, f"{COMMAND}.demo", f"{COMMAND}.run", f"{COMMAND}.simgpu", "simgpu"),
    "tests/deploy": (
        *(COMMAND, f"{COMMAND}.deviceplugin", f"{COMMAND}.labeller", f"{COMMAND}.sharemgr"),
        *("deviceplugin", "labeller", *SHOWN),
    ),
    "tests/deploy/uninstall": ("simgpu", f"{COMMAND}.run", f"{COMMAND}.simgpu"),
    "tests/hook": (*MANAGER, f"{COMMAND}.run"),
    "tests/kubelet": (*DAEMONS, f"{COMMAND}.run"),
    "tests/labeller": (COMMAND, f"{COMMAND}.labeller", "labeller"),
    "tests/node": (*MANAGER, f"{COMMAND}.run", f"{COMMAND}.trace", *SHOWN),
    "tests/sim": (COMMAND, f"{COMMAND}.replay"),
    "tests/simgpu": (COMMAND, f"{COMMAND}.simgpu", "simgpu"),
    "tests/tpu": (*MANAGER, f"{COMMAND}.run", f"{COMMAND}.status"),
    "tests/unit/building/test_mutations.py": ("sharemgr.node",),
    "tests/unit/doctor/test_driver.py": (COMMAND, f"{COMMAND}.doctor"),
    "tests/unit/rpc/test_lost_share.py": (COMMAND, f"{COMMAND}.run"),
    "tests/unit/test_command_errors.py": (COMMAND, f"{COMMAND}.labeller", f"{COMMAND}.trace", "labeller"),
    "tests/unit/test_forked.py": MANAGER,
    "tests/web": (*MANAGER, f"{COMMAND}.run", f"{COMMAND}.top"),
}
"""Folder of tests, or file → what they start as a process of its own: packages with all that these import; of a command
what of the command line it imports, as of the other parts it imports what other commands need, too."""


def changed(base: str) -> list[str]:
    """Paths that differ from where this tree left `base`, what is not committed included."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(
                f"git {words[0]}: {done.stderr.strip()}: say what to compare with, as in make test-changed BASE=HEAD~3"
            )
        return done.stdout.splitlines()

    (left,) = git("merge-base", base, "HEAD")
    return sorted({*git("diff", "--name-only", left), *git("ls-files", "--others", "--exclude-standard")})


class Project:
    """The import graph of the project's packages."""

    def __init__(self) -> None:
        sys.path.insert(0, str(ROOT))
        self._graph = grimp.build_graph(*PACKAGES, cache_dir=None)
        self.modules = self._graph.modules

    def run(self, root: str) -> set[str]:
        """What a process uses that a test starts."""
        if root.startswith(COMMAND):
            return {each for each in self.used(root) if each.startswith(COMMAND)}
        return set[str]().union(*map(self.used, {root, *self._graph.find_descendants(root)}))

    def used(self, module: str) -> set[str]:
        """A module, and what it imports, however far."""
        return {module, *self._graph.find_upstream_modules(module)}


def module_of(path: str) -> str:
    """The module that a file is."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Tests:
    """The files of the tests, and what they import."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.files = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if "gpu" not in path.parts)
        self._kit = {module_of(name(path)): path for path in (ROOT / "tests/kit").rglob("*.py")}
        """Name as it is imported → file."""
        self._read: dict[Path, set[str]] = {}

    def needs(self, file: Path) -> dict[Path, set[str]]:
        """The files of tests that a test needs, itself included, and what each of them imports."""
        found: dict[Path, set[str]] = {}
        ahead = [file, *self._conftests(file)]
        while ahead:
            path = ahead.pop()
            if path not in found:
                found[path] = self._imported(path)
                ahead += [self._kit[module] for module in found[path] if module in self._kit]
        return found

    def uses(self, file: Path) -> tuple[set[Path], set[str]]:
        """The files of tests that a test needs, and the project's modules."""
        needed = self.needs(file)
        named = set[str]().union(*needed.values()) & self._project.modules
        modules = set[str]().union(*map(self._project.used, named), *map(self._project.run, runs(file)))
        return set(needed), modules

    def _imported(self, path: Path) -> set[str]:
        if path not in self._read:
            self._read[path] = imported(path)
        return self._read[path]

    @staticmethod
    def _conftests(file: Path) -> list[Path]:
        return [
            found
            for folder in file.parents[:-1]
            if (found := folder / "conftest.py").exists() and ROOT in found.parents
        ]


def runs(file: Path) -> set[str]:
    """What RUNS says that a test starts."""
    return {root for where, roots in RUNS.items() if ROOT / where in (file, *file.parents) for root in roots}


def imported(path: Path) -> set[str]:
    """Names that a file imports: `a.b` of `import a.b`, `a.b` and `a.b.c` of `from a.b import c`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def chosen(paths: Iterable[str]) -> dict[str, set[str]]:
    """Test file or folder → the changed paths that ask for it."""
    project = Project()
    tests = Tests(project)
    used = {file: tests.uses(file) for file in tests.files}
    found: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        asks = set[str]()
        if path.endswith(".py") and module_of(path) in project.modules:
            asks = {name(file) for file, (_, modules) in used.items() if is_imported(path, modules)}
        elif path.startswith("tests/") and path not in FILES:
            asks = {name(file) for file, (files, _) in used.items() if ROOT / path in files}
            # What nobody imports is a program: its whole folder's.
            asks = asks or {name(file) for file, (files, _) in used.items() if is_beside(ROOT / path, file, files)}
        else:
            asks = set(next((who for begins, who in FILES.items() if path.startswith(begins)), ()))
        for each in asks:
            found[each].add(path)
        if not asks:
            print(f"{path}: no test uses it", file=sys.stderr)
    return found


def is_imported(path: str, modules: set[str]) -> bool:
    """Whether a file of the project is, with any of these modules: a package is with all that is below it."""
    module = module_of(path)
    below = path.endswith("/__init__.py") and any(each.startswith(f"{module}.") for each in modules)
    return module in modules or below


def is_beside(path: Path, file: Path, files: set[Path]) -> bool:
    """Whether a test, or of the kit what it uses, lies in the same folder as a file of the tests, or below that."""
    tests, first, second, *_ = path.relative_to(ROOT).parts
    if first != "kit":
        return ROOT / tests / first in file.parents
    return any(ROOT / tests / first / second in each.parents for each in files)


def name(file: Path) -> str:
    """As pytest takes it."""
    return str(file.relative_to(ROOT))


def main(base: str) -> None:
    """Prints what is chosen."""
    found = chosen(changed(base))
    kept = [each for each in sorted(found) if not any(str(folder) in found for folder in Path(each).parents)]
    for each in kept:
        why = sorted(found[each])
        print(f"{each}: {', '.join(why[:3])}{f' and {len(why) - 3} more' if len(why) > 3 else ''}", file=sys.stderr)
    print(f"{len(kept)} test files or folders", file=sys.stderr)
    print(*kept)


if __name__ == "__main__":
    main(sys.argv[1])
