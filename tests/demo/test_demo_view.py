"""What the demo shows, from a picture of one moment."""

import io

import pytest
from rich.console import Console, RenderableType

from edgeshare.cli.demo_plan import WORKLOADS, Verdict, judge_phase, make_phases
from edgeshare.cli.demo_view import (
    Picture,
    WorkloadRow,
    picture_lines,
    picture_view,
    verdict_lines,
    verdict_table,
)
from edgeshare.contract.units import MIB, NS_PER_MS, NS_PER_S

PHASES = make_phases(30)
ROW = WorkloadRow(
    WORKLOADS[1],
    rule_percent=60,
    executed_percent=59.87,
    queued_ns=NS_PER_MS // 2,
    waiting_ns=3 * NS_PER_MS,
    memory_used_bytes=512 * MIB,
    memory_mib=24_000,
)
PICTURE = Picture(12 * NS_PER_S, 30 * NS_PER_S, PHASES[1], [ROW])


def verdict_of(percents: dict[str, int]) -> Verdict:
    phase = PHASES[0]
    hundredth_ns = (phase.end_ns - phase.judged_from_ns) // 100
    totals_ns = {name: percent * hundredth_ns for name, percent in percents.items()}
    return Verdict((judge_phase(WORKLOADS, phase, totals_ns),))


def text_of(view: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_each_workload_is_shown_with_all_that_is_promised() -> None:
    for shown in (text_of(picture_view(PICTURE, 2 * NS_PER_S)), "\n".join(picture_lines(PICTURE))):
        for cell in ("green", "30 %", "100 %", "60 %", "59.9 %", "0.5 ms", "3.0 ms", "512 of 24000"):
            assert cell in shown
        assert "12.0 of 30 s" in shown
        assert "one pauses" in shown


def test_where_stdout_is_no_terminal_a_workload_is_one_line() -> None:
    assert len(picture_lines(PICTURE)) == 1
    assert "\x1b" not in picture_lines(PICTURE)[0]


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_the_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(picture_view(PICTURE, 2 * NS_PER_S))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert any("512 of 24000" in line for line in lines)
    assert len(lines) == 4


def test_the_summary_names_what_missed() -> None:
    verdict = verdict_of({"red": 45, "green": 35, "blue": 20, "alone": 100})
    shown = text_of(verdict_table(verdict))
    assert "45.00" in shown
    assert [line.split()[0] for line in verdict_lines(verdict)] == ["red", "green"]


def test_the_summary_says_that_all_is_well_only_where_it_is() -> None:
    verdict = verdict_of({"red": 50, "green": 30, "blue": 20, "alone": 100})
    assert "every workload got what the rule says" in verdict_lines(verdict)[0]
    assert verdict_lines(Verdict(())) == ["nothing was judged"]
