"""The tests of this folder need a real GPU: `make gpu-test`. Where there is none, all are skipped and say why."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from tests.kit.gpu.gpu import Gpu, NoGpuError, find_gpu
from tests.kit.gpu.lab import MODULES, Lab
from tests.kit.gpu.measures import Row, Timing
from tests.kit.gpu.record import RESULTS, text, write


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("a real GPU")
    group.addoption("--record", action="store_true", help="Write what is measured into docs/guarantees/gpu-results.md.")
    group.addoption("--python", action="append", help="A Python to look for PyTorch, JAX, CuPy and Numba in.")
    group.addoption("--seconds", type=float, default=10.0, help="How long each pair of programs is looked at.")


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    try:
        return find_gpu()
    except NoGpuError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def timing(request: pytest.FixtureRequest) -> Timing:
    return Timing(measure_s=request.config.getoption("--seconds"))


@pytest.fixture(scope="session")
def lab(gpu: Gpu, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A manager on this machine's GPUs. Its folder's path is short: a socket's path has 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="es-gpu-", dir="/dev/shm"))
    folder.chmod(0o755)
    pythons = [*(request.config.getoption("--python") or ()), sys.executable, "python3"]
    lab = Lab(folder, os.environ, pythons)
    lab.start()
    yield lab
    lab.close()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def rows(gpu: Gpu, lab: Lab, request: pytest.FixtureRequest) -> Iterator[list[Row]]:
    """What was measured; recorded when all is done, where the command line asks for it."""
    rows: list[Row] = []
    yield rows
    if not rows:
        return
    versions = {framework: lab.versions(framework) for framework in MODULES if lab.python(framework)}
    recorded = text(gpu, date.today(), versions, rows)
    print(f"\n{recorded}")
    if request.config.getoption("--record"):
        assert not gpu.simulated, "a simulated GPU is not what docs/guarantees/gpu-results.md is about"
        write(RESULTS, recorded)
