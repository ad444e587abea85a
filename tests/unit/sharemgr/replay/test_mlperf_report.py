"""`edgeshare replay mlperf`: what it prints, and what it refuses."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from edgeshare.cli.replay import command
from edgeshare.cli.replay.mlperf_plots import plot
from edgeshare.cli.replay.mlperf_report import LOWER, PUBLISHED, Report
from sharemgr.replay.engines import ARRIVALS_S, PERCENTS
from sharemgr.replay.experiment import BASELINES, Measured, Measures, Row

PLAIN = Measures(400, 100, 20, 40, 50, 49, 30, 800, 0, 0, 0, 0, 0, 0)
WORSE = Measures(800, 300, 400, 20, 10, 40, 60, 1600, 3, 0, 0, 1, 0, 0)


def found(**of: Sequence[Measures]) -> list[Measured]:
    """At each setting and rule, the measures of a policy for each seed, the same at each percent."""
    rows = [
        (Row(setting, rule, 0, policy, "none", "" if policy in BASELINES else "largest first"), by_seed)
        for setting in ARRIVALS_S
        for rule in ("45 %", "hard")
        for policy, by_seed in of.items()
    ]
    return [
        Measured(row, percent, seed, measures)
        for row, by_seed in rows
        for seed, measures in enumerate(by_seed)
        for percent in PERCENTS
    ]


def test_a_ratio_is_one_of_means_and_says_how_many_times_better() -> None:
    others = [WORSE, WORSE._replace(p99_s=1600)]
    report = Report(found(kubernetes=others, safe=[PLAIN, PLAIN._replace(p99_s=500)]), "none")
    document = report.as_json()
    (row,) = (
        each
        for each in document["rows"]
        if (each["setting"], each["rule"], each["policy"]) == ("15-30", "hard", "safe")
    )
    ratios = row["ratios"]["kubernetes"]
    assert ratios["p99_s"]["ratio"] == pytest.approx((800 + 1600) / (400 + 500), abs=1e-4)
    assert ratios["p99_s"]["sd"] == pytest.approx(abs(800 / 400 - 1600 / 500) / 2**0.5, abs=1e-4)
    assert ratios["memory_percent"]["ratio"] == 2
    met = {figure: ratios[figure]["is_as_published"] for figure in (*PUBLISHED["kubernetes"], "mean_s")}
    expected = {
        "p99_s": False,
        "pending_s": True,
        "memory_percent": False,
        "utilisation_percent": False,
        "power_w": True,
    }
    assert met == {**expected, "mean_s": None}
    assert all(ratios[figure]["ratio"] > 1 for figure in LOWER)
    assert row["figures"]["p99_s"]["mean"] == 450
    assert row["figures"]["p99_s"]["by_percent"]["250"] == 450
    assert row["totals"] == {"restarts": 0, "short_pods": 0}
    (worse,) = (
        each
        for each in document["rows"]
        if (each["setting"], each["rule"], each["policy"]) == ("15-30", "hard", "kubernetes")
    )
    assert worse["totals"] == {"restarts": 2 * 6 * 3, "short_pods": 2 * 6}


def test_nothing_is_so_many_times_better_than_no_time() -> None:
    report = Report(found(oracle=[PLAIN._replace(pending_s=0)], safe=[PLAIN._replace(pending_s=0)]), "none")
    row = next(each for each in report.rows if each.policy == "safe")
    other = report.against(row, "oracle")
    assert other is not None
    assert report.ratio(row, other, "pending_s") == (None, 0.0)


def test_tables_fit_a_narrow_terminal_and_name_every_row() -> None:
    seeds = [PLAIN, WORSE]
    report = Report(found(kubernetes=seeds, alibaba=seeds, safe=seeds), "late-peak")
    console = Console(width=80, file=StringIO())
    with console.capture() as capture:
        for table in report.tables():
            console.print(table)
    text = capture.get()
    assert "fault: late-peak" in text
    assert "…" not in text, "nothing is cut off"
    assert "1.00±0.00*" in text, "less than was published is marked"
    assert len(re.findall(r"^ *safe +\d", text, re.M)) == len(ARRIVALS_S)
    for ratios in PUBLISHED.values():
        assert re.search(r"published +" + r" +".join(f"{ratio:g}" for ratio in ratios.values()), text)


def test_plots_are_drawn_for_each_setting(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    settings = list(ARRIVALS_S)[:2]
    some = [each for each in found(kubernetes=[WORSE], safe=[PLAIN]) if each.row.setting in settings]
    paths = plot(Report(some, "none"), tmp_path)
    assert [path.name for path in paths] == [f"mlperf-{setting}.png" for setting in settings]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_the_command_runs_all_of_it_and_prints_json_alone() -> None:
    result = CliRunner().invoke(command, ["mlperf", "--seeds", "1", "--policy", "res-ag", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    policies = [(row["setting"], row["rule"], row["guaranteed_percent"], row["policy"]) for row in document["rows"]]
    assert len(set(policies)) == len(policies) == len(ARRIVALS_S) * 2 * (len(BASELINES) + 3)
    assert document["seeds"] == 1
    means = [row["figures"]["p99_s"]["mean"] for row in document["rows"] if row["policy"] == "kubernetes"]
    assert len(means) == 8
    assert all(slower <= faster for slower, faster in pairwise(means)), "the faster they come, the longer they wait"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "magic"], "'magic' is not one of"),
        (["--fault", "earthquake"], "'earthquake' is not one of"),
        (["--seeds", "0"], "0 is not in the range 1<=x<=1000"),
        (["--seeds", "many"], "'many' is not a valid integer"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(command, ["mlperf", *arguments])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


STARTS_A_WORKER = """
import os, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from edgeshare.cli.replay.mlperf import begin_worker
if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("forkserver"), begin_worker) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        sys.stdin.read()
"""


def test_a_worker_ends_with_the_command_however_that_ends(tmp_path: Path) -> None:
    script = tmp_path / "starts.py"
    script.write_text(STARTS_A_WORKER)
    with subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        worker = os.pidfd_open(int(command.stdout.readline()))
        os.kill(command.pid, signal.SIGKILL)
    poll = select.poll()
    poll.register(worker, select.POLLIN)
    assert poll.poll(60_000), "it runs on"
    os.close(worker)
