"""A program that was not written for these tests: NVIDIA's own Python bindings, unchanged."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from manager import MIB, PATIENCE_S, ScriptedManager
from programs import ROOT, SOURCES, Stage

from cuda_hook import wire

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")


def test_nvidias_bindings_wait_for_a_grant_and_see_the_cap(
    stage: Stage, manager: ScriptedManager, tmp_path: Path
) -> None:
    lines = re.findall(r'"(.*)\\n"', (ROOT / "simgpu" / "workload" / "spin.h").read_text())
    (tmp_path / "spin.ptx").write_text("\n".join(lines) + "\n\0")
    process = subprocess.Popen(
        [sys.executable, str(SOURCES / "bindings.py"), str(tmp_path / "spin.ptx")],
        env=stage.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "launching\n"
        manager.hears(wire.Request)
        assert stage.executed() == []
        manager.grant()
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert out.split("\n")[:3] == ["launched", "CUDA_ERROR_OUT_OF_MEMORY", f"{1024 * MIB} {1024 * MIB}"]
    assert process.returncode == 0
    assert [interval.kind for interval in stage.executed()] == ["kernel"]
