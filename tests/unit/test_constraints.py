"""What is installed with edgeshare is of the versions that are tested."""

from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"


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


def test_every_package_that_edgeshare_needs_is_pinned() -> None:
    pins = [Requirement(line) for line in CONSTRAINTS.read_text().splitlines()]
    assert all(len(pin.specifier) == 1 and str(pin.specifier).startswith("==") for pin in pins)
    pinned = {canonicalize_name(pin.name) for pin in pins}
    every = needed(Requirement("edgeshare[cluster,dev]"), set())
    assert {"h2", "hpack", "kubernetes", "pytest"} <= every
    assert every - pinned - {"edgeshare"} == set()
