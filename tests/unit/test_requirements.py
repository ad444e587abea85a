"""What is installed with edgeshare is of the versions that are tested."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FILES = {"requirements.txt": "edgeshare[build,cluster]", "requirements-dev.txt": "edgeshare[dev]"}
SHA256 = re.compile("sha256:[0-9a-f]{64}")


def pins(name: str) -> dict[str, tuple[Requirement, list[str]]]:
    """What a file of requirements pins, by name, and the hashes of each."""
    found = {}
    for entry in (ROOT / name).read_text().replace("\\\n", "").splitlines():
        requirement, *hashes = re.split(r"\s+--hash=", entry.strip())
        parsed = Requirement(requirement)
        found[canonicalize_name(parsed.name)] = (parsed, hashes)
    return found


def needed(of: Requirement, seen: set[str]) -> set[str]:
    """What a package needs with these extras, and what that needs, on a machine like this one."""
    for line in requires(of.name) or ():
        requirement = Requirement(line)
        wanted = any(
            requirement.marker is None or requirement.marker.evaluate({"extra": extra}) for extra in ("", *of.extras)
        )
        name = canonicalize_name(requirement.name)
        if wanted and name not in seen:
            seen.add(name)
            try:
                needed(requirement, seen)
            except PackageNotFoundError:
                # Pinned all the same: another machine may install it.
                continue
    return seen


@pytest.mark.parametrize("name", FILES)
def test_every_package_that_edgeshare_needs_is_pinned_with_the_hashes_of_its_files(name: str) -> None:
    pinned = pins(name)
    for requirement, hashes in pinned.values():
        assert [each.operator for each in requirement.specifier] == ["=="], requirement
        assert hashes, requirement
        assert all(SHA256.fullmatch(each) for each in hashes), requirement
    every = needed(Requirement(FILES[name]), set())
    assert {"aiohttp", "yarl", "kubernetes", "setuptools"} <= every
    assert every - pinned.keys() - {"edgeshare"} == set()


def test_what_is_built_and_run_is_of_the_versions_that_are_tested() -> None:
    tested = pins("requirements-dev.txt")
    assert all(pin == tested[name] for name, pin in pins("requirements.txt").items())


def test_what_builds_it_is_pinned_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["build-system"]["requires"]) <= set(project["project"]["optional-dependencies"]["build"])
