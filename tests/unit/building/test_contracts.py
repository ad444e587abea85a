"""The import contracts at the end of pyproject.toml hold all that says of itself that it is pure; and what they do not
see, the measurements, uses no test."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PRODUCT = ("deviceplugin", "edgeshare", "labeller", "sharemgr")
HOLDING = ("decisions are functions of state, event and time", "decisions by what others keep ask nobody themselves")


def held() -> set[str]:
    """Modules and packages that a contract holds to being pure."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return {name for each in settings["contracts"] if each["name"] in HOLDING for name in each["source_modules"]}


def called_pure(path: Path) -> list[str]:
    """Modules and packages that a file's first docstring calls pure: its own, or by name those of its package."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    own = [module] if re.search(r"\bPure[.:]|^[^`.]*\bpure( functions\b|:)", text) else []
    named = re.findall(r"``(\w+)/?``[^`.]*\bpure\b", text) if path.name == "__init__.py" else []
    return own + [f"{module}.{name}" for name in named]


def test_measurements_use_of_the_tests_what_those_have_in_common_alone() -> None:
    files = [*(ROOT / "bench").rglob("*.py"), *(ROOT / "tests/kit").rglob("*.py")]
    taken = [
        (path, node.module)
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests.")
    ]
    assert len(taken) > 200
    assert [f"{path}: {module}" for path, module in taken if not module.startswith("tests.kit.")] == []


def test_who_is_called_pure_is_held_to_it() -> None:
    contracts = held()
    called = [name for part in PRODUCT for path in sorted((ROOT / part).rglob("*.py")) for name in called_pure(path)]
    assert len(called) > 20
    assert [name for name in called if not any(f"{name}.".startswith(f"{each}.") for each in contracts)] == []
