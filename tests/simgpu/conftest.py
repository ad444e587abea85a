"""Simulated machines for the tests of this folder, and programs on them."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.machine.simulated import Simulated


@pytest.fixture
def simulate() -> Iterator[Callable[..., Simulated]]:
    """Makes machines, in memory; arguments are those of ``simgpu.create.create``."""
    root = Path(tempfile.mkdtemp(prefix="simgpu-test-", dir="/dev/shm"))
    made: list[Simulated] = []

    def make(**plan: object) -> Simulated:
        made.append(Simulated(root / str(len(made)), **plan))
        return made[-1]

    yield make
    for each in made:
        each.end()
    shutil.rmtree(root)


@pytest.fixture
def simulated(simulate: Callable[..., Simulated]) -> Simulated:
    """Two small GPUs that run what was queued first, first."""
    return simulate(gpus=2, memory_mib=2048)


@pytest.fixture(params=["fifo", "timeslice"])
def either(request: pytest.FixtureRequest, simulate: Callable[..., Simulated]) -> Simulated:
    """The same, once with each scheduling."""
    return simulate(gpus=2, memory_mib=2048, scheduling=request.param)
