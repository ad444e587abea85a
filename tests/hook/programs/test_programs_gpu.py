"""What `make gpu-test` runs on a real GPU, on the simulated one: the harness measures what the GPU executed."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest

from tests.kit.gpu.gpu import Gpu
from tests.kit.gpu.lab import Job, Lab
from tests.kit.gpu.measures import Row, Timing, cap, launches, shares, sums, tails
from tests.kit.gpu.record import BEGIN, RESULTS, text, write
from tests.kit.hook.stage import ROOT
from tests.kit.manager.testbed import GPU_MEMORY_MIB, Testbed

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")

QUICK = Timing(settle_s=0.3, measure_s=0.8)
MANY_REQUESTS = Timing(settle_s=0.3, measure_s=3.0)
"""With one each 20 ms: half of them are more than a busy machine delays at a time."""

CAP_MIB = 1024


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    root = Path(tempfile.mkdtemp(prefix="es-gpu-", dir="/dev/shm"))
    testbed = Testbed(root)
    yield testbed
    testbed.close()
    shutil.rmtree(root)


@pytest.fixture
def lab(testbed: Testbed) -> Iterator[Lab]:
    lab = Lab(testbed.root, testbed.environment, ["/none/such/python", sys.executable])
    lab.start()
    yield lab
    lab.close()


class Told:
    """A lab whose programs say what the test says, run by run."""

    def __init__(self, *runs: list[dict[str, float | None]]) -> None:
        self._runs = iter(runs)
        self.jobs: list[list[tuple[str, int | None, bool]]] = []

    def side_by_side(self, jobs: Sequence[Job], _settle_s: float, _measure_s: float) -> list[dict[str, float | None]]:
        self.jobs.append([(job.mode, job.percent, job.latency) for job in jobs])
        return next(self._runs)


def steps(count: int, **more: float | None) -> dict[str, float | None]:
    """What a program says after two seconds."""
    return {"steps": count, "seconds": 2.0, "step_ms": None} | more


def test_shares_are_worked_out_from_the_steps_that_programs_count() -> None:
    lab = Told(
        [steps(2000, step_ms=1.0)],
        [steps(1900)],
        [steps(900), steps(900)],
        [steps(1330), steps(570)],
    )
    rows = shares(lab, "bindings", "graph", QUICK)  # type: ignore[arg-type]
    assert lab.jobs == [
        [("train", None, False)],
        [("train", 70, False)],
        [("train", None, False)] * 2,
        [("train", 70, False), ("train", 30, False)],
    ]
    assert [row.value for row in rows] == pytest.approx([70, 95, 95, 95])
    assert [row.without for row in rows] == [50, 90, None, 90]


def test_tails_are_those_of_the_requests_beside_training() -> None:
    def served(count: int, p50_ms: float, p99_ms: float) -> dict[str, float | None]:
        return steps(count, p50_ms=p50_ms, p99_ms=p99_ms)

    lab = Told([served(100, 1, 2)], [served(100, 3, 4)], [served(60, 50, 60), steps(1)], [served(80, 7, 8), steps(1)])
    rows = tails(lab, "bindings", QUICK)  # type: ignore[arg-type]
    serves, trains = ("serve", 30, True), ("train", 70, False)
    assert lab.jobs == [
        [("serve", None, False)],
        [serves],
        [("serve", None, False), ("train", None, False)],
        [serves, trains],
    ]
    assert [(row.value, row.without) for row in rows] == [(4, 2), (8, 60), (7, 50), (80, None)]


def test_who_has_the_larger_share_counts_more_steps(testbed: Testbed, lab: Lab) -> None:
    share, *kept = shares(lab, "bindings", "graph", QUICK)
    executed = testbed.machine.executed_ns(0)
    first, second = sorted(executed, key=lambda tag: int(tag.removeprefix("job")))[-2:]
    assert executed[first] > executed[second]
    assert share.value > 50
    assert min(row.value for row in kept) > 0


def test_most_requests_wait_less_beside_a_training_loop_with_a_share(lab: Lab) -> None:
    _, _, median, served = tails(lab, "bindings", MANY_REQUESTS, every_ms=20)
    assert median.without is not None
    assert median.value < median.without
    assert served.value > 0


def test_programs_fill_their_cap_and_compute_the_same(lab: Lab) -> None:
    answer = cap(lab, "bindings", CAP_MIB)
    assert answer["total_mib"] == CAP_MIB < GPU_MEMORY_MIB
    assert answer["taken_mib"] <= CAP_MIB
    assert answer["error"] == "OutOfMemoryError: CUDA_ERROR_OUT_OF_MEMORY"
    bare, hooked = sums(lab, "bindings", "eager")
    assert bare == hooked == 1 << 20


def test_time_added_to_a_launch_is_measured(lab: Lab) -> None:
    added, launch = launches(lab, 100)
    assert launch.without is not None
    assert added.value < launch.value


def test_a_program_that_fails_is_told_with_its_last_words(lab: Lab) -> None:
    with pytest.raises(AssertionError, match=r"(?s)bindings-train.* ended: .*invalid float value"):
        lab.once(Job("bindings", "train", ("--every-ms", "never"), 50))


def test_what_is_recorded_takes_the_place_of_what_was(tmp_path: Path) -> None:
    gpu = Gpu("Tesla T4", 15360, "580.0", "13.0", "2 × CPU, Linux", simulated=True)
    rows = [Row("share of 70 %", "bindings eager", 69.951, "%", 50.0), Row("taken", "bindings", 1024, "MiB")]
    results = tmp_path / "results.md"
    results.write_text(RESULTS.read_text())
    for on in (date(2026, 1, 1), date(2026, 1, 2)):
        write(results, text(gpu, on, {"bindings": "13"}, rows))
    head, recorded = results.read_text().split(BEGIN)
    assert head == RESULTS.read_text().split(BEGIN)[0]
    assert "2026-01-02, Tesla T4 (simulated), 15360 MiB, driver 580.0, CUDA 13.0" in recorded
    assert "2026-01-01" not in recorded
    assert "| share of 70 % | bindings eager | 69.95 % | 50.00 % |" in recorded
    assert "| taken | bindings | 1024.00 MiB |  |" in recorded


def test_without_a_gpu_all_is_skipped_with_the_reason(tmp_path: Path) -> None:
    hidden = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "SIMGPU_MACHINE")}
    try:
        subprocess.run(["nvidia-smi"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pass
    else:
        pytest.skip("there is a GPU here")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/gpu"],
        cwd=ROOT,
        env=hidden,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no GPU: NVML does not start" in done.stdout
    assert "passed" not in done.stdout
    assert done.returncode == 0
