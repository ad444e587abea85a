"""Each measurement of the bench, with as little effort as it takes to have one value."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench.assigner import cost
from bench.hook import launch, memory, threads
from bench.machine import floors
from bench.measurement import QUICK, Bench, Effort
from bench.node import drains, faults, gaps, latency, shares, slices, usage
from bench.report import Row
from bench.stage import Client
from simgpu.machine import Interval

LEAST = replace(
    QUICK,
    floor_samples=10,
    launch_runs=1,
    launch_pairs=10,
    allocation_runs=1,
    allocation_pairs=5,
    pair_s=3.2,
    alone_s=1.2,
    threads_ms=50,
    share_s=3.2,
    share_window_s=0.5,
    drains=3,
    latency_s=1.2,
    usage_s=0.3,
    gaps_s=1.2,
    gaps_settle_s=0.2,
    assigner_pods=20,
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("bench")) as made:
        yield made


def rows_of(bench: Bench, module: object, name: str, effort: Effort = LEAST) -> list[Row]:
    """The rows of one measurement of a module."""
    planned = module.measurements(effort)  # type: ignore[attr-defined]  # a module
    return list(next(each for each in planned if name in each.name).measure(bench))


@pytest.mark.parametrize(
    ("module", "name", "figures"),
    [
        (floors, "two-hop relay in C, back", {"floor: two-hop relay in C, p50", "floor: two-hop relay in C, p99"}),
        (launch, "added time", {"time added to a launch"}),
        (threads, "in turn", {"rate kept, threads in turn"}),
        (memory, "one allocation", {"time added to one allocation and its free"}),
        (drains, "kernels of 1 ms", {"revoke until the device is drained, p99"}),
        (faults, "goes idle, fifo", {"holder goes idle: until the other's next kernel"}),
        (latency, "fifo", {"latency client (30 %): p99, more than alone"}),
        (usage, "bursts of 10 ms", {"GPU time reported, off what was executed", "markers, at 1 us each"}),
        (
            gaps,
            "20 %: 8 x 20 us, 0.4 ms without work; 80 %: 0.3 ms without a pause, fifo",
            {
                "GPU time beside others, of what it has alone",
                "GPU time, of what it has without edgeshare: the least",
            },
        ),
        (shares, "graphs", {"share error"}),
        (
            cost,
            "processor time",
            {
                "the assigner's processor time a pod",
                "the assigner's processor time: filter",
                "the assigner's processor time: bind",
                "the assigner's processor time: watches",
                "the stand-ins' processor time a pod",
            },
        ),
        (
            slices,
            "1 ms, timeslice",
            {
                "throughput kept, two saturating clients",
                "markers, at 1 us each",
                "longest wait of a client with a 50 % request",
                "hand-over, p50",
                "hand-over, p50, in two-hop relays in C",
                "hand-over, p99",
                "hand-over, p99, in two-hop relays in C",
                "manager's processor time",
            },
        ),
    ],
)
def test_a_measurement_gives_its_figures(bench: Bench, module: object, name: str, figures: set[str]) -> None:
    rows = rows_of(bench, module, name)
    assert {row.figure for row in rows} == figures
    assert all(row.runs for row in rows)


def test_a_client_that_is_called_back_is_seen_to_drain(bench: Bench, tmp_path: Path) -> None:
    called, executed = drains.call_back(bench.laboratory("fifo"), tmp_path / "caller", "1000", 5)
    assert len(called) == 5
    assert all(revoked_ns < released_ns for revoked_ns, released_ns in called)
    # A slice holds five kernels of 1 ms, and nothing runs between two slices.
    assert len(executed) >= 5 + drains.WARM_UP
    for (_, released_ns), (revoked_ns, _) in pairwise(called):
        assert any(released_ns < each.begin_ns < revoked_ns for each in executed)


def test_what_was_executed_is_read_when_nothing_runs_any_more(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = bench.laboratory("fifo")
    machine = laboratory.stage.machine
    log, alive = machine.log, list[str]()

    def read(gpu: int, since: int = 0) -> tuple[list[Interval], int]:
        alive.extend(process.tag for process in machine.processes() if process.alive)
        return log(gpu, since)

    monkeypatch.setattr(machine, "log", read)
    run = laboratory.run([Client("only", "1000")], 0.1)
    assert run.intervals
    assert run.markers == 0
    assert not alive
