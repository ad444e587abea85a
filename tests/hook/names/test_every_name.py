"""Every function that NVIDIA declares or exports is intercepted, or left alone for a reason that is written down; and
every door of a driver gives the wrapper of exactly what the driver itself would have given."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from simgpu.create import create
from simgpu.environment import variables
from simgpu.native import LIBRARIES
from tests.kit.hook import left_alone
from tests.kit.hook.releases import DRIVERS, RELEASES, NotHereError, base, driver, exported_names, header_names
from tests.kit.hook.stage import HOOK, compile_program

ADVICE = (
    "Wrap each that submits work or gets device memory (cuda_hook/src/driver/symbols.def), or say in "
    "cuda_hook/src/entry/left_alone.def why it is left alone: CONTRIBUTING.md, 'Add a symbol to the hook'."
)
VERSIONS = [0, 10020, *range(11000, 11090, 10), *range(12000, 12100, 10), *range(13000, 13060, 10)]
"""What cuGetProcAddress is asked for: 10.2 to 13.5, and the version 0 that libcudart begins with."""

SIMULATED = LIBRARIES / "libcuda.so.1"


def intercepted() -> frozenset[str]:
    """What the hook has a wrapper for, by the driver's own names."""
    return frozenset(name for name in exported_names(HOOK) if not name.startswith("nvml"))


def unknown(names: Iterable[str], wrapped: frozenset[str]) -> list[str]:
    """Those that are neither wrapped, under this very name, nor left alone in all their versions and forms."""
    left = {name for group in left_alone.groups() for name in group.names}
    return sorted(name for name in names if name not in wrapped and base(name) not in left)


def names_of(source: str) -> frozenset[str]:
    """The functions of a CUDA release's headers or of a driver; the test is skipped where they cannot be had."""
    try:
        return header_names(source) if source in RELEASES else exported_names(driver(source))
    except NotHereError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("source", [*RELEASES, *DRIVERS])
def test_every_function_is_intercepted_or_left_alone_for_a_reason(source: str) -> None:
    names = names_of(source)
    assert len(names) > 500
    not_known = unknown(names, intercepted())
    assert not not_known, f"CUDA or driver {source} has functions that the hook does not know: {not_known}. {ADVICE}"


@pytest.mark.parametrize(
    "name",
    ["cuMemcpyTwiceAsync", "cuLaunchKernel_v2", "cuMemAllocAsync_v2_ptsz"],
)
def test_a_function_of_a_driver_to_come_would_be_reported(name: str) -> None:
    assert unknown({name, "cuInit", "cuDeviceGet"}, intercepted()) == [name]


def test_all_that_is_intercepted_would_be_missed() -> None:
    """None of it is also left alone: a wrapper that is lost cannot go unseen."""
    assert len(intercepted()) > 150
    # A list of both kinds would hide it.
    assert unknown(intercepted(), frozenset()) == sorted(intercepted())


def test_what_is_left_alone_has_one_reason_and_no_name_that_nobody_has() -> None:
    groups = left_alone.groups()
    listed = [name for group in groups for name in group.names]
    assert len(listed) == len(set(listed)) == left_alone.LIST.read_text().count("ES_LEFT(cu") > 300
    assert {group.does for group in groups} == set(left_alone.KINDS)
    assert all(len(group.reason) > 20 for group in groups)
    everything = {base(name) for source in [*RELEASES, *DRIVERS] for name in names_of(source)}
    assert set(listed) <= everything


def test_readers_are_told_what_is_left_alone_and_why() -> None:
    assert left_alone.documented() == left_alone.section(), "run python -m tests.kit.hook.left_alone"


def test_nothing_that_is_intercepted_is_of_our_own_making() -> None:
    everything = {name for source in [*RELEASES, *DRIVERS] for name in names_of(source)}
    assert intercepted() <= everything


def walk(program: Path, library: Path, names: Iterable[str], env: dict[str, str]) -> list[str]:
    """Of every look-up: door, name, version, flags, result, status, object, symbol."""
    done = subprocess.run(
        [program, library, *map(str, VERSIONS)],
        input="".join(f"{name}\n" for name in names),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("version", [*DRIVERS, "simulated"])
def test_every_door_gives_the_wrapper_of_what_the_driver_chose(version: str, tmp_path: Path) -> None:
    """All names × doors × versions × flags, the empty name and one that nobody has among them."""
    environment = {}
    if version == "simulated":
        library = SIMULATED
        create(tmp_path / "machine", gpus=1)
        environment = variables(tmp_path / "machine", {})
    else:
        names_of(version)
        library = driver(version)
    names = {*exported_names(library), *intercepted(), "", "cuNothing"}
    for release in RELEASES:
        names |= names_of(release)
    names |= {base(name) for name in names}
    program = compile_program(tmp_path / "walk", "names/walk.c")
    bare = walk(program, library, sorted(names), environment)
    hooked = walk(program, library, sorted(names), {**environment, "LD_PRELOAD": str(HOOK)})
    assert len(bare) > len(names) * (4 + 4 * len(VERSIONS)) * 0.9
    wrapped = intercepted()
    wrong: list[tuple[str, str]] = []
    found: dict[str, set[str]] = {}
    for answer, with_hook in zip(bare, hooked, strict=True):
        asked, place, symbol = answer.rsplit(" ", 2)
        assert symbol != "?"
        expected = answer
        if place == "driver" and symbol in wrapped:
            expected = f"{asked} hook {symbol}"
            found.setdefault(asked.partition(" ")[0], set()).add(symbol)
        if with_hook != expected:
            wrong.append((with_hook, answer))
    assert not wrong, f"{len(wrong)} look-ups differ, for example (with and without the hook): {wrong[:5]}"
    # Each door that this driver has leads to wrappers, in many versions.
    assert {door for door, symbols in found.items() if len(symbols) > 80} >= {"handle", "default", "next", "getproc"}
