"""The environment in which a program finds a simulated driver instead of a real one."""

import os
from collections.abc import Mapping
from pathlib import Path

from simgpu.native import LIBRARIES


def variables(machine: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What to add to an environment: the machine, and our libraries before what the loader searches now."""
    before = environment.get("LD_LIBRARY_PATH")
    search = str(LIBRARIES) if not before else f"{LIBRARIES}{os.pathsep}{before}"
    return {"LD_LIBRARY_PATH": search, "SIMGPU_MACHINE": str(machine)}
