"""Writes what was measured into docs/guarantees/gpu-results.md."""

from datetime import date
from pathlib import Path

from tests.kit.gpu.gpu import Gpu
from tests.kit.gpu.measures import Row

RESULTS = Path(__file__).parents[3] / "docs/guarantees/gpu-results.md"
BEGIN = "<!-- written by `make gpu-test`: do not edit below -->"


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | programs | with edgeshare | without |", "| --- | --- | --- | --- |"]
    for row in rows:
        without = "" if row.without is None else f"{row.without:.2f} {row.unit}"
        lines.append(f"| {row.what} | {row.programs} | {row.value:.2f} {row.unit} | {without} |")
    return "\n".join(lines)


def text(gpu: Gpu, on: date, versions: dict[str, str], rows: list[Row]) -> str:
    """All that is recorded of a run."""
    programs = ", ".join(f"{name} {version}".strip() for name, version in sorted(versions.items()))
    simulated = " (simulated)" if gpu.simulated else ""
    return "\n".join(
        [
            f"{on.isoformat()}, {gpu.name}{simulated}, {gpu.memory_mib} MiB, driver {gpu.driver}, CUDA {gpu.cuda};",
            f"{gpu.machine}; {programs}.",
            "",
            table(rows),
        ]
    )


def write(path: Path, recorded: str) -> None:
    """Puts it in the place of what was recorded before."""
    head, mark, _ = path.read_text(encoding="utf-8").partition(BEGIN)
    assert mark, f"{path} has no line {BEGIN!r}"
    path.write_text(f"{head}{BEGIN}\n\n{recorded}\n", encoding="utf-8")
