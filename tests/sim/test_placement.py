"""Placement on whole clusters: generated ones, and a recorded one where it is there."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from bench.cluster import placement
from bench.measurement import QUICK, Bench
from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.options import Options
from sharemgr.cluster.placement.policies import DEFAULT, POLICIES, Policy
from sharemgr.cluster.placement.policies.fgd import worth_growth
from sharemgr.cluster.placement.rows import Floats
from sharemgr.replay.arrivals import arrivals, at_percent, capacity_units, replay
from sharemgr.replay.openb import read_nodes, read_pods
from tests.kit.sim.cluster.generated_traces import TRACES, write

ROOT = Path(__file__).parents[2]
SEED = 42
RIVALS = {"binpack", "fgd"}
"""Those that pack. What spreads pods allocates far less, and ours without its memory of neighbours just as much."""


def allocated(files: tuple[Path, Path], policy: Policy) -> float:
    """In percent, when pods have come that ask for all there is."""
    nodes, pods = read_nodes(files[0]), read_pods(files[1])
    return at_percent(replay(nodes, arrivals(pods, capacity_units(nodes), SEED), policy), [100])[100]


@cache
def allocated_of(trace: str, policy: str) -> float:
    """Of a generated trace; replayed once, also where several tests ask for it."""
    with TemporaryDirectory() as folder:
        return allocated(write(trace, Path(folder)), POLICIES[policy])


@pytest.mark.parametrize("trace", TRACES)
def test_our_default_allocates_more_than_the_others_on_clusters_it_was_not_chosen_by(
    trace: str, pytestconfig: pytest.Config
) -> None:
    ours = allocated_of(trace, DEFAULT)
    for other in POLICIES.keys() - {DEFAULT} if pytestconfig.getoption("soak") else RIVALS:
        assert ours > allocated_of(trace, other) - 0.1


def as_published(options: Options, demand: Demand) -> Floats:
    """FGD as its authors' simulator scores: whole numbers from 0 to 100, of the sigmoid of the fragmented GPUs that
    there are fewer of. The first node of equals wins, there by name, here in the file's order, which is the same."""
    fewer_units = options.units + worth_growth(options, demand, demand.plain)
    score: Floats = np.floor(100 / (1 + np.exp(-fewer_units / 100)) + 1e-9)
    return score


@pytest.mark.skipif(
    not placement.NODES.is_file(), reason=f"no openb traces at {placement.FOLDER}: set EDGESHARE_OPENB_DIR"
)
@pytest.mark.parametrize(
    ("policy", "least", "most"),
    [(as_published, 95.23 - 0.4, 95.23 + 0.4), (POLICIES[DEFAULT], 95.23 + 0.4, 100)],
    ids=["fgd as published", "our default"],
)
def test_on_the_default_trace_fgd_does_as_published_and_our_default_better(
    policy: Policy, least: float, most: float
) -> None:
    files = placement.NODES, placement.pods_file("default")
    assert least < allocated(files, policy) < most


def test_the_bench_replays_the_traces_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, pods = write("few-cores", tmp_path)
    monkeypatch.setattr(placement, "FOLDER", tmp_path)
    monkeypatch.setattr(placement, "NODES", tmp_path / "nodes.csv")
    assert placement.measurements(QUICK) == []
    nodes.rename(placement.NODES)
    pods.rename(placement.pods_file("default"))
    first, *_, last = placement.measurements(QUICK)
    with Bench(tmp_path / "bench") as bench:
        (of_trace,), (of_time,) = first.measure(bench), last.measure(bench)
    assert list(of_trace.with_edgeshare) == [of_trace.value] == [allocated_of("few-cores", DEFAULT)]
    assert list(of_trace.without_edgeshare) == [allocated_of("few-cores", "fgd")]
    assert of_trace.met == (of_trace.value >= 95.23)
    assert of_time.settings["nodes"] == 160
    assert of_time.value > 0


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edgeshare.cli", "replay", "openb", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)


@pytest.fixture
def small(tmp_path: Path) -> tuple[str | Path, ...]:
    """A trace of a few pods, as arguments."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\na,64000,65536,4,T4\nb,64000,65536,4,T4\n")
    lines = [f"p{n},1000,1024,1,{50 * (n % 20 + 1)}\n" for n in range(16) if n % 2]
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(lines))
    return "--nodes", nodes, "--pods", pods


def test_the_command_prints_means_and_deviations_as_json_and_nothing_else(small: tuple[str | Path, ...]) -> None:
    done = run(*small, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["policy"] == DEFAULT
    assert list(report["allocated_percent"]) == ["90", "95", "100", "110", "120", "130"]
    for figure in report["allocated_percent"].values():
        assert set(figure) == {"mean", "sd"}
        assert 60 < figure["mean"] <= 100
        assert 0 <= figure["sd"] < 20
    assert json.loads(run(*small, "--json", "--policy", "spread").stdout)["policy"] == "spread"


def test_the_command_prints_a_table_for_people(small: tuple[str | Path, ...]) -> None:
    done = run(*small, "--policy", "fgd")
    assert done.returncode == 0, done.stderr
    assert "policy fgd, 10 runs" in done.stdout
    assert "130" in done.stdout


def test_the_command_says_which_line_of_which_file_is_wrong(small: tuple[str | Path, ...]) -> None:
    pods = Path(small[3])
    pods.write_text(pods.read_text()[:-3])
    done = run(*small)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{pods} line 9: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_draws_both_plots(small: tuple[str | Path, ...], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'edgeshare[plots]'")
    done = run(*small, "--json", "--plots", tmp_path / "plots")
    assert done.returncode == 0, done.stderr
    for name in ("allocation-usable.png", "fragmentation-usable.png"):
        assert (tmp_path / "plots" / name).read_bytes().startswith(b"\x89PNG")
    json.loads(done.stdout)


def test_the_command_says_what_to_install_where_numpy_is_missing() -> None:
    program = "import sys; sys.modules['numpy'] = None; from edgeshare.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "replay", "--help"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "edgeshare: edgeshare replay needs numpy: pip install 'edgeshare[cluster]'\n"
