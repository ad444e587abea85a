"""What the workload does when it is asked for graphs, for requests and to end."""

import pytest
from simulated import PATIENCE_S, Simulated


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
