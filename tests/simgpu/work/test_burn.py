"""What the workload does when it is asked for graphs, for requests and to end."""

import time

import pytest

from simgpu.native import BURN
from tests.kit.machine.simulated import MS, PATIENCE_S, Simulated


@pytest.mark.parametrize("door", ["linked", "dlopen", "getproc"])
def test_a_graph_runs_all_its_kernels_through_every_door(simulated: Simulated, door: str) -> None:
    summary = simulated.burn(
        "x", "--door", door, "--graph", 5, "--kernel-us", 200, "--mode", "sync", "--seconds", 0.1
    ).result()
    assert summary["kernel_ns"] == summary["launches"] * 5 * 200_000 > 0
    assert simulated.machine.executed_ns(0) == {"x": summary["kernel_ns"]}


def test_a_request_takes_as_long_as_its_kernels_and_begins_no_sooner_than_it_is_due(simulated: Simulated) -> None:
    options = ("--mode", "request", "--period-us", 20_000, "--sync-every", 3, "--kernel-us", 1000, "--seconds", 0.3)
    summary = simulated.burn("x", *options).result()
    requests = summary["request_ns"]
    assert len(requests) == summary["synchronizations"] == summary["launches"] / 3
    assert all(request_ns >= 3_000_000 for request_ns in requests)
    # Each is due 20 ms after the one before, so that no more than these fit.
    assert 1 <= len(requests) <= 16


def test_so_many_requests_are_made_as_it_was_asked_for(simulated: Simulated) -> None:
    options = ("--mode", "request", "--period-us", 1000, "--requests", 7, "--kernel-us", 100, "--seconds", 600)
    assert len(simulated.burn("x", *options).result()["request_ns"]) == 7


def test_one_that_is_asked_to_end_ends_well(simulated: Simulated) -> None:
    process = simulated.burn("x", "--seconds", 600).process
    simulated.until(lambda: simulated.machine.executed_ns(0).get("x"))
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


def test_it_begins_when_it_is_told_once_it_is_ready(simulated: Simulated) -> None:
    start_ns = time.monotonic_ns() + 50 * MS
    told = ("sh", "-c", f'echo {start_ns} | "$@"', "sh")
    program = simulated.start(*told, BURN, "--start-when-told", "--seconds", 0.01)
    assert program.line() == "ready"
    assert program.process.wait(PATIENCE_S) == 0
    assert simulated.log()[0].begin_ns >= start_ns


def test_one_that_nobody_tells_when_to_begin_says_so(simulated: Simulated) -> None:
    program = simulated.start("sh", "-c", '"$@" </dev/null', "sh", BURN, "--start-when-told")
    status, said = program.failure()
    assert status == 1
    assert said == "burn: standard input ended without a time to begin at: write the ns of CLOCK_MONOTONIC to it\n"
    assert simulated.log() == []
