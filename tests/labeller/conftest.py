"""What the tests of the labeller share: an API server, and the labeller as a program."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simgpu.trees import JETSONS, add_jetson
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.apiserver.serving import serving
from tests.kit.labeller.labeller_under_test import END_S, Labeller, Running
from tests.kit.processes import forked


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("the labeller")
    group.addoption("--record-labels", action="store_true", help="Write what is found into tests/labeller/golden.")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    """An API server that knows node n1; its kubeconfig is tmp_path/kubeconfig."""
    with serving(tmp_path) as (server, _):
        server.nodes["n1"] = {"metadata": {"name": "n1", "uid": "uid-of-n1"}}
        yield server


@pytest.fixture
def labeller(tmp_path: Path) -> Labeller:
    return Labeller(tmp_path)


@pytest.fixture
def nano(labeller: Labeller) -> Labeller:
    """The labeller of a Jetson Nano."""
    add_jetson(labeller.root, JETSONS["nano"])
    return labeller


@pytest.fixture
def start(labeller: Labeller) -> Iterator[Callable[..., Running]]:
    """Starts one that runs until the test is over."""
    started: list[forked.Forked] = []

    def run(*options: str) -> Running:
        process = forked.start([*labeller.arguments, *options], {**os.environ, "PYTHONUNBUFFERED": "1"})
        started.append(process)
        assert process.stdout is not None
        return Running(process, process.stdout)

    yield run
    for process in started:
        process.kill()
        process.wait(END_S)
        assert process.stdout is not None
        process.stdout.close()
