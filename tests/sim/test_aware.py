"""What placement by profiles changes for 200 pods, as they run under the node's own rule on simulated GPUs."""

from functools import cache
from pathlib import Path

import pytest

from tests.kit.sim.cluster.aware_figures import Figures, Lab, row
from tests.kit.sim.device.simulated_device import Device, Simulator

SHORT = Device(run_s=4, settle_s=1)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(Simulator(Path(tmp_path_factory.mktemp("device"))), SHORT)


@cache
def figures(lab: Lab, name: str, asked_percent: int) -> Figures:
    """Once, also where several tests ask for it."""
    return row(lab, name, asked_percent, seed=1)


@pytest.mark.parametrize(("asked_percent", "of_waits"), [(70, 0.6), (90, 0.7)])
def test_requests_wait_for_less_and_the_others_do_no_less(asked_percent: int, of_waits: float, lab: Lab) -> None:
    usable, aware = (figures(lab, name, asked_percent) for name in ("usable", "aware"))
    assert aware.wait_p99_ms < of_waits * usable.wait_p99_ms
    assert aware.late_percent < usable.late_percent
    assert aware.work > usable.work + 0.01
    assert aware.allocated_percent >= usable.allocated_percent - 1


def test_profiles_that_are_all_wrong_take_no_work_away(lab: Lab) -> None:
    usable, wrong = (figures(lab, name, 70) for name in ("usable", "aware, each another's profile"))
    assert wrong.work >= usable.work - 0.03
    assert wrong.wait_p99_ms < 1.5 * usable.wait_p99_ms


def test_the_same_seed_gives_the_same_figures(lab: Lab) -> None:
    assert row(lab, "aware", 70, seed=2, count=40) == row(lab, "aware", 70, seed=2, count=40)
