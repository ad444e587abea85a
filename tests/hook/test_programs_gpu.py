"""What `make gpu-test` runs on a real GPU, on the simulated one: the harness measures what the GPU executed."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from programs import ROOT
from testbed import GPU_MEMORY_MIB, Testbed, assert_measures

sys.path.append(str(ROOT / "tests" / "gpu"))
sys.path.append(str(ROOT))

from gpu import Gpu
from lab import Job, Lab
from measures import Row, Timing, cap, launches, shares, sums, tails
from record import BEGIN, RESULTS, text, write

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")

QUICK = Timing(settle_s=0.3, measure_s=0.8)
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


def executed_percents(testbed: Testbed) -> list[float]:
    """The first one's part of what the simulated GPU executed, for each of the last two pairs of jobs."""
    executed_ns = testbed.machine.executed_ns(0)
    first, second, third, fourth = sorted(executed_ns, key=lambda tag: int(tag.removeprefix("job")))[-4:]
    return [100 * executed_ns[a] / (executed_ns[a] + executed_ns[b]) for a, b in ((first, second), (third, fourth))]


def test_shares_by_throughput_are_those_that_the_gpu_executed(testbed: Testbed, lab: Lab) -> None:
    def measured() -> list[float | bool]:
        share, *kept = shares(lab, "bindings", "graph", QUICK)
        assert share.without is not None
        # Of all that was executed, the time before and after the measurement included.
        free, shared = executed_percents(testbed)
        # Two cores run all of this: how much is kept is the machine's to say.
        enough = min(row.value for row in kept) > 30
        return [share.value, share.value - share.without, share.value - shared, share.without - free, enough]

    expected = [pytest.approx(70, abs=8), pytest.approx(20, abs=15), *[pytest.approx(0, abs=6)] * 2, True]
    assert_measures(expected, measured)


def test_a_training_loop_beside_is_felt_less_with_a_share(lab: Lab) -> None:
    def measured() -> list[bool]:
        _, beside, _, served = tails(lab, "bindings", QUICK, every_ms=20)
        assert beside.without is not None
        return [beside.value < beside.without, served.value > 50]

    assert_measures([True, True], measured)


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
